//! What people have frozen, as `preflight` needs it.

use serde_json::{Value, json};
use toolgate_store::FreezeTarget;
use toolgate_store_sqlite::ReadOnlyStore;

use super::admin;
use crate::admin_client::AdminClient;
use crate::args::PreflightArgs;
use crate::data::{find_data, is_announced};
use crate::freeze::{is_frozen, label_of};

/// The freezes, and the label of the grant that is asked about.
#[derive(Default)]
pub(super) struct Stops {
    freezes: Vec<Value>,
    grant: Option<String>,
}

impl Stops {
    /// Whether a call to this server is refused.
    pub(super) fn stop(&self, server: &str) -> bool {
        let grant = self.grant.as_deref();
        grant.is_some_and(|grant| is_frozen(&self.freezes, "grant", grant))
            || is_frozen(&self.freezes, "server", server)
    }
}

/// Asks the running gateway, or reads the data folder. An agent that may do neither learns of a freeze
/// from its call.
pub(super) fn read(args: &PreflightArgs) -> anyhow::Result<Stops> {
    let (admin, data) = (admin(args), &args.agent.data);
    let folder = find_data(data.data.as_deref(), data.config.as_deref())?;
    if admin.admin.is_none() && !is_announced(&folder) {
        let Ok(Some(mut store)) = ReadOnlyStore::open(&folder) else { return Ok(Stops::default()) };
        let snapshot = store.snapshot()?;
        let label = |named: &String| {
            let stored = snapshot.grants.iter().find(|grant| *grant.id == **named);
            stored.map_or_else(|| named.clone(), |grant| grant.label.to_string())
        };
        let freezes = snapshot.freezes.iter().map(|freeze| of_target(&freeze.what)).collect();
        return Ok(Stops { freezes, grant: args.grant.as_ref().map(label) });
    }
    let Ok(client) = AdminClient::new(&admin) else { return Ok(Stops::default()) };
    let Ok(freezes) = client.list("/api/v1/freeze") else { return Ok(Stops::default()) };
    let grant = args.grant.as_deref().map(|named| label_of(&client, named)).transpose()?;
    Ok(Stops { freezes, grant })
}

/// As the API shows it.
fn of_target(target: &FreezeTarget) -> Value {
    match target {
        FreezeTarget::All => json!({"all": true}),
        FreezeTarget::Grant(label) => json!({"grant": label}),
        FreezeTarget::Server(name) => json!({"server": name}),
        FreezeTarget::Session(id) => json!({"session": id}),
    }
}
