//! What an operator should look at, with what to do.

use serde_json::Value;

use super::Facts;
use crate::freeze;
use crate::listing::text;

/// One sentence per problem; empty if all is well.
pub(super) fn find(facts: &Facts) -> Vec<String> {
    let status = &facts.status;
    if let Some(found) = status.get("attention").and_then(Value::as_array) {
        let found = found.iter().filter_map(Value::as_str).map(str::to_owned);
        return found.chain(facts.servers.iter().filter_map(of_server)).collect();
    }
    let mut found = Vec::new();
    let freezes = status.get("freezes").and_then(Value::as_array).map(Vec::as_slice);
    found.extend(freezes.unwrap_or_default().iter().map(|item| {
        let id = text(item, "id").unwrap_or("?");
        format!("{} is frozen; `toolgate unfreeze {id}` ends it", freeze::target(item))
    }));
    if status.get("reload").is_some_and(|last| text(last, "error").is_some()) {
        found.push(
            "the last reload failed, so the previous configuration is active; \
             `toolgate config check` shows why"
                .to_owned(),
        );
    }
    if text(status, "durability") == Some("off") {
        found.push("`audit.durability` is off: calls are not recorded".to_owned());
    }
    found.extend(facts.servers.iter().filter_map(of_server));
    found.extend(facts.sessions.iter().filter_map(of_session));
    found.extend(facts.policies.iter().filter_map(of_policy));
    found.extend(facts.grants.iter().filter_map(of_grant));
    found
}

fn of_server(server: &Value) -> Option<String> {
    let (name, state) = (text(server, "name")?, text(server, "state")?);
    let state = match state {
        "failed" => "has failed",
        "backing_off" => "has failed and is started again after a pause",
        _ => return None,
    };
    Some(format!("server `{name}` {state}; `toolgate server test {name}` shows why"))
}

fn of_session(session: &Value) -> Option<String> {
    let Some(id) = text(session, "session_id") else {
        return text(session, "what_to_do")
            .map(|what| format!("a socket has not registered: {what}"));
    };
    if session.get("conflict").is_some_and(Value::is_array) {
        return Some(format!("session `{id}`: two programs use the same client_uid"));
    }
    let unresponsive = session.get("unresponsive").and_then(Value::as_bool) == Some(true);
    unresponsive.then(|| format!("session `{id}` does not answer"))
}

fn of_policy(policy: &Value) -> Option<String> {
    let name = text(policy, "name")?;
    let broken = text(policy, "state") == Some("broken");
    broken.then(|| format!("policy `{name}` cannot be used; its grants are denied every call"))
}

fn of_grant(grant: &Value) -> Option<String> {
    let label = text(grant, "label")?;
    let is_active = grant.get("revoked").is_none_or(Value::is_null);
    let has_policy = text(grant, "policy").is_some();
    (is_active && !has_policy).then(|| {
        format!(
            "grant `{label}` has no policy, so every call is denied; \
             `toolgate grant update {label} --policy NAME` sets one"
        )
    })
}
