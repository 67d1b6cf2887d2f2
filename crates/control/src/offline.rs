//! A grant of a data folder from which no gateway serves, as a gateway would load it.

use std::sync::Arc;

use toolgate_config::Config;
use toolgate_gateway::{ActivePolicy, Records};
use toolgate_policy::{Class, Known};
use toolgate_session::{self as session, Reach};
use toolgate_store::{Document, Snapshot};

use crate::checked_policies::CheckedPolicies;
use crate::policies::{Before, Compiled, FileState, Policies, PolicyErrors, policies};
use crate::session_settings::{classes, stored_reach};

/// A grant and its policy.
#[derive(Debug)]
pub struct KnownGrant {
    /// Its label.
    pub label: String,
    /// The identity behind it.
    pub identity: Option<String>,
    /// Groups of that identity.
    pub groups: Vec<String>,
    /// The servers it may reach; `None` for all.
    pub servers: Option<Vec<String>>,
    /// The sessions it may reach.
    pub sessions: Arc<Reach>,
    /// Whether it was revoked.
    pub revoked: bool,
    /// Its active policy, and the document of that.
    pub policy: Option<(Arc<ActivePolicy>, String)>,
}

/// The grant of this id or label, if there is one.
pub fn grant(
    file: &FileState,
    snapshot: &Snapshot,
    servers: &[String],
    named: &str,
) -> Result<Option<KnownGrant>, PolicyErrors> {
    let (compiled, checked) = (Compiled::default(), CheckedPolicies::default());
    let before = Before { compiled: &compiled, checked: &checked, is_start: true };
    let known = Known { servers: servers.to_vec(), ..Known::default() };
    let policies = policies(file, snapshot, false, &known, &before)?;
    let policy = |name: Option<&str>| in_force(&policies, snapshot, name?);
    if let Some(grant) = file.config.grants.iter().find(|grant| grant.label == named) {
        let mut kept = snapshot.grants.iter();
        return Ok(Some(KnownGrant {
            label: grant.label.clone(),
            identity: grant.identity.clone(),
            groups: grant.groups.clone(),
            servers: grant.servers.clone(),
            sessions: Arc::new(grant.sessions.clone()),
            // A revocation in the store takes precedence over the file.
            revoked: kept.any(|kept| *kept.label == *named && kept.revoked.is_some()),
            policy: policy(grant.policy.as_deref()),
        }));
    }
    let found = snapshot.grants.iter().find(|grant| *grant.id == *named || *grant.label == *named);
    Ok(found.map(|grant| KnownGrant {
        label: grant.label.to_string(),
        identity: grant.identity.as_deref().map(str::to_owned),
        groups: grant.groups.clone(),
        servers: grant.servers.clone(),
        sessions: grant.sessions.as_deref().map(stored_reach).unwrap_or_default(),
        revoked: grant.revoked.is_some(),
        policy: policy(grant.policy.as_deref()),
    }))
}

/// The session tool that a grant knows by this name, from the showcase of the folder: as a gateway
/// would find it without any session. With `by_original` also by the name that its program uses.
pub fn session_tool(
    (config, servers): (&Config, &[String]),
    showcase: &[Document],
    reach: &Reach,
    (tool, by_original): (&str, bool),
) -> Option<(session::KnownSessionTool, Class)> {
    let entries = Records::entries(showcase);
    let mut settings = config.sessions.settings.clone();
    settings.servers = servers.to_vec();
    let machine = session::SessionMachine::new(settings, entries, session::Millis(0));
    let published = || {
        let published = machine.published(reach).tools.into_iter();
        let mut named = published.filter(|it| by_original && *it.original == *tool);
        machine.known(&named.next()?.name, reach)
    };
    let known = machine.known(tool, reach).or_else(published)?;
    let class = classes(config).of(&known);
    Some((known, class))
}

fn in_force(
    policies: &Policies,
    snapshot: &Snapshot,
    name: &str,
) -> Option<(Arc<ActivePolicy>, String)> {
    let in_force = policies.by_name.get(name)?;
    let of_file = policies.of_file.iter().find(|(other, _)| other == name);
    let text = of_file.map(|(_, text)| text.clone()).or_else(|| {
        let kept = snapshot.policies.iter().find(|kept| *kept.name == *name);
        kept.map(|kept| kept.document.to_string())
    });
    Some((Arc::clone(in_force), text.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::PolicyFiles;
    use crate::test_config::{config, snapshot_of, stored_grant};

    fn found(named: &str, snapshot: &Snapshot) -> Option<KnownGrant> {
        let config = config(
            "policies: { p: { version: '1', default: allow } }\n\
             grants: [{ label: a, token: env:A, policy: p }, { label: b, token: env:B }]",
        );
        let file = FileState { config, policies: PolicyFiles::default(), local_policy: None };
        grant(&file, snapshot, &[], named).unwrap()
    }

    #[test]
    fn a_grant_of_the_file_has_the_policy_and_revocation_that_a_gateway_would_use() {
        let snapshot = snapshot_of(vec![stored_grant("b", None, true)]);
        let a = found("a", &snapshot).unwrap();
        assert!(!a.revoked && a.policy.is_some());
        let b = found("b", &snapshot).unwrap();
        assert!(b.revoked && b.policy.is_none());
    }

    #[test]
    fn a_grant_of_the_store_is_found_by_id_and_label() {
        let snapshot = snapshot_of(vec![stored_grant("s", Some("recommended"), false)]);
        for named in ["s", "g-s"] {
            let known = found(named, &snapshot).unwrap();
            assert!(!known.revoked && known.policy.is_some(), "{named}");
        }
        assert!(found("another", &snapshot).is_none());
    }
}
