//! What an operator should look at: one sentence each, with what to do.

use crate::last_reload::LastReload;
use crate::view::{FreezeItem, GrantItem, PolicyState, View};

/// Facts about the running gateway that are not in the view.
#[derive(Debug, Default)]
pub struct Facts<'a> {
    /// The last reload of the configuration.
    pub reload: Option<&'a LastReload>,
    /// Whether rows are written at all.
    pub is_recording: bool,
    /// Servers that cannot be used, with the reason.
    pub failed_servers: Vec<(String, String)>,
    /// Tools that are quarantined, as `server/tool`.
    pub quarantined: Vec<String>,
    /// How many calls wait for a person.
    pub pending_approvals: u64,
    /// The connected sessions, as `GET /api/v1/sessions` shows them.
    pub sessions: &'a [serde_json::Value],
}

/// Everything that needs a person; empty if all is well.
pub fn attention(view: &View, facts: &Facts<'_>) -> Vec<String> {
    let mut found: Vec<String> = view.freezes.iter().map(of_freeze).collect();
    if let Some(LastReload { error: Some(_), .. }) = facts.reload {
        found.push(
            "the last reload was rejected, so the previous configuration is active; \
             `toolgate config check` shows why"
                .to_owned(),
        );
    }
    if !facts.is_recording {
        found.push("`audit.durability` is off: calls are not recorded".to_owned());
    }
    found.extend(facts.failed_servers.iter().map(|(name, why)| {
        format!("server `{name}` cannot be used: {why}; `toolgate server test {name}` tries again")
    }));
    found.extend(of_approvals(facts.pending_approvals));
    found.extend(of_quarantine(&facts.quarantined));
    found.extend(facts.sessions.iter().filter_map(of_session));
    let broken = view.policies.iter().filter(|policy| policy.item.state == PolicyState::Broken);
    found.extend(broken.map(|policy| {
        let name = &policy.item.name;
        format!("policy `{name}` cannot be used; its grants are denied every call")
    }));
    found.extend(view.grants.iter().filter_map(of_grant));
    found
}

fn of_approvals(pending: u64) -> Option<String> {
    let calls = match pending {
        0 => return None,
        1 => "1 call waits".to_owned(),
        more => format!("{more} calls wait"),
    };
    Some(format!("{calls} for a person; `toolgate approval list` shows what to answer"))
}

/// One sentence for all of them: a server that changes all its tools has many.
fn of_quarantine(keys: &[String]) -> Option<String> {
    let first = keys.first()?;
    let which = match keys.len() {
        1 => format!("tool `{first}` is quarantined"),
        more => format!("{more} tools are quarantined, such as `{first}`"),
    };
    Some(format!("{which}; `toolgate tool show --diff {first}` shows the change"))
}

fn of_freeze(freeze: &FreezeItem) -> String {
    let what = match freeze {
        FreezeItem { grant: Some(label), .. } => format!("grant `{label}`"),
        FreezeItem { server: Some(name), .. } => format!("server `{name}`"),
        FreezeItem { session: Some(id), .. } => format!("session `{id}`"),
        _ => "everything".to_owned(),
    };
    format!("{what} is frozen; `toolgate unfreeze {}` ends it", freeze.id)
}

fn of_session(session: &serde_json::Value) -> Option<String> {
    let text = |key: &str| session.get(key).and_then(serde_json::Value::as_str);
    let id = text("session_id")?;
    let in_conflict = session.get("conflict").is_some_and(serde_json::Value::is_array);
    in_conflict.then(|| format!("session `{id}`: two programs use the same client_uid"))
}

fn of_grant(grant: &GrantItem) -> Option<String> {
    let label = &grant.label;
    (grant.revoked.is_none() && grant.policy.is_none()).then(|| {
        format!("grant `{label}` has no policy, so every call is denied; give it one, such as `recommended`")
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::policies::{FileState, Policies, PolicyFiles};
    use crate::read_model::read_model;
    use crate::test_config::{config, snapshot_of, stored_grant};

    fn view(text: &str) -> View {
        let (config, policies) = (config(text), PolicyFiles::default());
        let servers = config.servers.clone();
        let file = FileState { config, policies, local_policy: None };
        let snapshot = snapshot_of(vec![stored_grant("gone", None, true)]);
        let mut view = read_model(&file, &snapshot, &servers, &Policies::default(), false);
        // Nothing was compiled here, so every policy would be broken.
        view.policies.clear();
        view
    }

    fn found(text: &str, facts: &Facts<'_>) -> Vec<String> {
        attention(&view(text), facts)
    }

    #[test]
    fn nothing_needs_a_person_if_all_is_well() {
        let facts = Facts { is_recording: true, ..Facts::default() };
        assert_eq!(found("", &facts), Vec::<String>::new(), "a revoked grant needs no policy");
    }

    #[test]
    fn each_cause_is_named_with_what_to_do() {
        let error = Some("line 3".to_owned());
        let reload = LastReload { time: Timestamp::UNIX_EPOCH, error };
        let sessions = [serde_json::json!({ "session_id": "u1", "conflict": ["a", "b"] })];
        let facts = Facts {
            reload: Some(&reload),
            is_recording: false,
            failed_servers: vec![("files".to_owned(), "no such program".to_owned())],
            quarantined: vec!["files/read".to_owned(), "files/write".to_owned()],
            pending_approvals: 2,
            sessions: &sessions,
        };
        let found = found("grants: [{ label: a, token: env:A }]", &facts);
        for part in [
            "the last reload was rejected",
            "durability` is off",
            "server `files` cannot be used: no such program",
            "2 calls wait for a person",
            "2 tools are quarantined, such as `files/read`; `toolgate tool show --diff files/read`",
            "session `u1`: two programs",
            "grant `a` has no policy",
        ] {
            assert_eq!(
                found.iter().filter(|one| one.contains(part)).count(),
                1,
                "{part}: {found:?}"
            );
        }
        assert_eq!(found.len(), 7);
    }
}
