//! Freezes: a person stops a grant, a server, or everything.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_store::{Change, Freeze, Frozen};

use super::grants::{self, id};
use crate::api::Ask;
use crate::fault::Fault;
use crate::reply::{Answer, created, done};

/// What to stop: exactly one of these.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewFreeze")]
pub(crate) struct What {
    /// A grant, by id or label.
    grant: Option<String>,
    /// A server, by name.
    server: Option<String>,
    /// Everything.
    #[serde(default)]
    all: bool,
}

/// A freeze that was made.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FreezeMade")]
pub(crate) struct Made {
    /// Its id.
    id: String,
}

pub(crate) async fn create(ask: Ask) -> Answer {
    let what: What = ask.json()?;
    let view = ask.admin.view();
    let (frozen, words) = match (what.grant, what.server, what.all) {
        (Some(grant), None, false) => {
            let label = &grants::find(&view, &grant)?.label;
            (Frozen::Grant(label.as_str().into()), format!("the grant `{label}`"))
        }
        (None, Some(server), false) => {
            if !view.servers.iter().any(|known| known.name == server) {
                return Err(Fault::not_found(format!("there is no server `{server}`")));
            }
            (Frozen::Server(server.as_str().into()), format!("the server `{server}`"))
        }
        (None, None, true) => (Frozen::All, "everything".to_owned()),
        _ => {
            let why = "give exactly one of `grant`, `server` and `\"all\": true`";
            return Err(Fault::bad_request(why));
        }
    };
    let id = id("f-", &ask.admin.random()?);
    let mut row = ask.row(&format!("froze {words}"));
    match &frozen {
        Frozen::Grant(label) => row.grant = Some(label.clone()),
        Frozen::Server(name) => row.server = Some(name.clone()),
        Frozen::All => {}
    }
    let made = Made { id: id.to_string() };
    let freeze = Freeze { id, what: frozen, created: ask.admin.now() };
    ask.change(Change::Freeze(freeze), row).await?;
    created(&made)
}

pub(crate) async fn end(ask: Ask) -> Answer {
    let view = ask.admin.view();
    let id = ask.param("id");
    let found = view.freezes.iter().find(|freeze| freeze.id == id);
    let freeze = found.ok_or_else(|| Fault::not_found(format!("there is no freeze `{id}`")))?;
    let words = match (&freeze.grant, &freeze.server) {
        (Some(grant), _) => format!("the grant `{grant}`"),
        (_, Some(server)) => format!("the server `{server}`"),
        _ => "everything".to_owned(),
    };
    let mut row = ask.row(&format!("ended the freeze of {words}"));
    row.grant = freeze.grant.as_deref().map(Into::into);
    row.server = freeze.server.as_deref().map(Into::into);
    ask.change(Change::Unfreeze(id.into()), row).await?;
    done()
}
