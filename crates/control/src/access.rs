//! Access: which token is which grant, with which policy, and what is frozen.
//!
//! A revocation in the store takes precedence over a grant of the file. A grant of the file whose
//! label a stored grant already has is rejected, because rows and limits are kept by label.
//!
//! Start at [`access`].

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use toolgate_audit::Hash;
use toolgate_config::{Config, GrantConfig};
use toolgate_gateway::{Access, Approvers, Frozen, Grant, GrantedException};
use toolgate_policy::{Exception, ExceptionFacts, Kept};
use toolgate_store::{self as store, Snapshot, StandingException};

use crate::policies::{LOCAL, Policies};
use crate::read_model::{file_id, is_of_file};
use crate::session_settings::stored_reach;

/// A grant of the file has the label of a stored grant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the label `{0}` of a grant in toolgate.yaml is taken by a grant that was created at run time; \
     choose another, or revoke that one first"
)]
pub struct LabelTaken(pub String);

/// The access that file and store give together.
pub(crate) fn access(
    config: &Config,
    snapshot: &Snapshot,
    policies: &Policies,
) -> Result<Access, LabelTaken> {
    let local = policies.local.as_ref().map(|policy| {
        let policy = Some(Arc::clone(policy));
        Arc::new(Grant { label: LOCAL.into(), policy, ..Grant::default() })
    });
    let is_revoked = |grant: &&store::StoredGrant| grant.revoked.is_some();
    let revoked = snapshot.grants.iter().filter(is_revoked);
    let revoked: HashSet<&str> = revoked.map(|grant| &*grant.label).collect();
    // A record about a grant of the file that is not revoked any more has no effect.
    let in_store = || {
        let stored = snapshot.grants.iter().filter(|grant| !is_revoked(grant));
        stored.filter(|grant| !is_of_file(&grant.id))
    };
    let in_file = || config.grants.iter();
    if let Some(taken) = in_store().find(|grant| in_file().any(|it| it.label == *grant.label)) {
        return Err(LabelTaken(taken.label.to_string()));
    }
    let of_file = in_file().filter(|grant| !revoked.contains(&*grant.label));
    let of_file =
        of_file.map(|grant| (Hash(*grant.token.as_bytes()), of_file_grant(grant, policies)));
    let of_store = in_store().map(|grant| (grant.token, of_stored_grant(grant, policies)));
    let mut access = Access::new(local, of_file.chain(of_store));
    access.generation = Some(snapshot.generation);
    access.frozen = frozen(snapshot);
    Ok(access)
}

/// The standing exceptions of the store, by grant. One whose person may not answer any more means
/// nothing, and neither does one that cannot be read.
pub(crate) fn exceptions(
    snapshot: &Snapshot,
    approvers: &Approvers,
) -> HashMap<Arc<str>, Vec<GrantedException>> {
    let mut all: HashMap<Arc<str>, Vec<GrantedException>> = HashMap::new();
    for one in &snapshot.exceptions {
        let Some(person) = approvers.by_name.get(&one.person) else { continue };
        let Ok(kept) = serde_json::from_str::<Kept>(&one.kept) else {
            tracing::error!(id = &*one.id, "a standing exception cannot be read; it lifts nothing");
            continue;
        };
        let facts = ExceptionFacts {
            id: one.id.to_string(),
            grant: one.grant.to_string(),
            server: one.server.to_string(),
            session: one.session_id.as_deref().unwrap_or_default().to_owned(),
            tool: one.tool.to_string(),
            fingerprint: one.fingerprint.map(|hash| hash.0.to_vec()).unwrap_or_default(),
            policy_hash: one.policy_hash.map(|hash| hash.to_string()).unwrap_or_default(),
            question: one.question.clone(),
            expires: person.expires.map_or(one.expires, |end| one.expires.min(end)),
        };
        let exception = Arc::new(Exception::plain(facts));
        all.entry(Arc::clone(&one.grant)).or_default().push(GrantedException { exception, kept });
    }
    all
}

/// The standing exceptions that have no effect any more, and why. They are ended for good: a policy
/// that changes back, or a new person of the same name, does not bring them to life again.
///
/// The policy of the grant `elsewhere` is known only to another process.
pub(crate) fn void_exceptions<'s>(
    snapshot: &'s Snapshot,
    access: &Access,
    elsewhere: &str,
) -> Vec<(&'s StandingException, &'static str)> {
    let why = |one: &StandingException| {
        let grant = access.of_label(&one.grant);
        let identity = grant.and_then(|grant| grant.identity.as_deref());
        if access.approvers.may_be_asked(&one.question, &one.person, identity).is_err() {
            return Some("its person may not answer approvals any more");
        }
        match grant {
            _ if *one.grant == *elsewhere => None,
            None => Some("its grant has ended"),
            Some(grant) => {
                let hash = grant.policy.as_ref().and_then(|policy| policy.hash);
                (hash != one.policy_hash).then_some("the policy of its grant has changed")
            }
        }
    };
    snapshot.exceptions.iter().filter_map(|one| Some((one, why(one)?))).collect()
}

pub(crate) fn frozen(snapshot: &Snapshot) -> Frozen {
    let mut frozen = Frozen::default();
    for freeze in &snapshot.freezes {
        match &freeze.what {
            store::FreezeTarget::All => frozen.all = true,
            store::FreezeTarget::Grant(label) => drop(frozen.grants.insert(Arc::clone(label))),
            store::FreezeTarget::Server(name) => drop(frozen.servers.insert(Arc::clone(name))),
            store::FreezeTarget::Session(id) => drop(frozen.sessions.insert(Arc::clone(id))),
        }
    }
    frozen
}

fn of_file_grant(grant: &GrantConfig, policies: &Policies) -> Arc<Grant> {
    let policy = grant.policy.as_ref().and_then(|name| policies.by_name.get(name)).cloned();
    Arc::new(Grant {
        id: Some(file_id(&grant.label).into()),
        label: grant.label.as_str().into(),
        identity: grant.identity.as_deref().map(Into::into),
        groups: grant.groups.clone(),
        sessions: Arc::new(grant.sessions.clone()),
        servers: grant.servers.as_ref().map(|servers| servers.iter().cloned().collect()),
        policy,
        token: Some(Hash(*grant.token.as_bytes())),
        expires: grant.expires,
        ..Grant::default()
    })
}

fn of_stored_grant(grant: &store::StoredGrant, policies: &Policies) -> Arc<Grant> {
    let policy = grant.policy.as_ref().and_then(|name| policies.by_name.get(&**name)).cloned();
    Arc::new(Grant {
        id: Some(Arc::clone(&grant.id)),
        label: Arc::clone(&grant.label),
        identity: grant.identity.clone(),
        groups: grant.groups.clone(),
        servers: grant.servers.as_ref().map(|servers| servers.iter().cloned().collect()),
        sessions: grant.sessions.as_deref().map(stored_reach).unwrap_or_default(),
        policy,
        token: Some(grant.token),
        expires: grant.expires,
        ..Grant::default()
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use toolgate_gateway::ActivePolicy;
    use toolgate_policy::Known;

    use super::*;
    use crate::policy_check::check;
    use crate::test_config::{config, snapshot_of, stored_grant, token};

    const GRANTS: &str = "policies: { p: { file: p } }\n\
                          grants: [{ label: a, token: env:A, policy: p }, { label: b, token: env:B }]";

    fn with_policy() -> Policies {
        let policy = check("p", "version: '1'\ndefault: allow\n", &Known::default()).policy;
        let active = Arc::new(ActivePolicy::of_version(Arc::new(policy.unwrap()), None));
        Policies { by_name: [("p".to_owned(), active)].into(), ..Policies::default() }
    }

    fn label_of(access: &Access, token: &str) -> Option<String> {
        let found = access.caller(Some(token), Timestamp::UNIX_EPOCH)?;
        Some(found.label.to_string())
    }

    #[test]
    fn grants_of_both_sides_are_found_by_their_tokens() {
        let snapshot = snapshot_of(vec![stored_grant("s", Some("p"), false)]);
        let access = access(&config(GRANTS), &snapshot, &with_policy()).unwrap();
        assert_eq!(label_of(&access, &token("A")).as_deref(), Some("a"));
        assert_eq!(label_of(&access, &token("B")).as_deref(), Some("b"));
        assert_eq!(label_of(&access, "s").as_deref(), Some("s"));
        assert_eq!(label_of(&access, "another"), None);
    }

    #[test]
    fn a_revocation_takes_precedence_over_the_file() {
        let snapshot = snapshot_of(vec![stored_grant("a", None, true)]);
        let access = access(&config(GRANTS), &snapshot, &with_policy()).unwrap();
        assert_eq!(label_of(&access, &token("A")), None);
        assert_eq!(label_of(&access, &token("B")).as_deref(), Some("b"));
    }

    #[test]
    fn a_revoked_grant_of_the_store_opens_nothing() {
        let snapshot = snapshot_of(vec![stored_grant("s", Some("p"), true)]);
        let access = access(&config(""), &snapshot, &with_policy()).unwrap();
        assert_eq!(label_of(&access, "s"), None);
    }

    #[test]
    fn a_label_belongs_to_one_grant() {
        let snapshot = snapshot_of(vec![stored_grant("b", None, false)]);
        let taken = access(&config(GRANTS), &snapshot, &with_policy()).unwrap_err();
        assert_eq!(taken, LabelTaken("b".to_owned()));
    }

    #[test]
    fn a_grant_whose_policy_is_not_active_has_none() {
        let snapshot = snapshot_of(vec![stored_grant("s", Some("broken"), false)]);
        let access = access(&config(GRANTS), &snapshot, &with_policy()).unwrap();
        let policy = |token: &str| {
            access.caller(Some(token), Timestamp::UNIX_EPOCH).unwrap().policy.is_some()
        };
        assert!(policy(&token("A")) && !policy(&token("B")) && !policy("s"));
    }

    #[test]
    fn calls_without_a_token_need_the_policy_of_local_mode() {
        let none = access(&config(""), &Snapshot::default(), &with_policy()).unwrap();
        assert!(none.caller(None, Timestamp::UNIX_EPOCH).is_none());
        let mut policies = with_policy();
        policies.local = policies.by_name.get("p").cloned();
        let local = access(&config(""), &Snapshot::default(), &policies).unwrap();
        assert_eq!(&*local.caller(None, Timestamp::UNIX_EPOCH).unwrap().label, LOCAL);
    }

    #[test]
    fn freezes_are_those_of_the_store() {
        let freeze = |what| store::Freeze {
            id: "f".into(),
            what,
            created: Timestamp::UNIX_EPOCH,
            person: None,
            reason: None,
        };
        let freezes = vec![
            freeze(store::FreezeTarget::Grant("a".into())),
            freeze(store::FreezeTarget::Server("s".into())),
            freeze(store::FreezeTarget::Session("u".into())),
        ];
        let mut snapshot = Snapshot { freezes, generation: 7, ..Snapshot::default() };
        let some = access(&config(GRANTS), &snapshot, &with_policy()).unwrap();
        assert_eq!(some.generation, Some(7));
        let frozen = &some.frozen;
        assert!(!frozen.all && frozen.grants.contains("a"));
        assert!(frozen.servers.contains("s") && frozen.sessions.contains("u"));
        snapshot.freezes = vec![freeze(store::FreezeTarget::All)];
        assert!(access(&config(GRANTS), &snapshot, &with_policy()).unwrap().frozen.all);
    }
}
