//! The screen for people.

use serde_json::Value;
use toolgate_control::visible;

use super::{Facts, attention};
use crate::freeze;
use crate::listing::{cell, text};

/// The width of the first column.
const HEAD: usize = 11;
/// How many characters of a policy's hash are shown.
const HASH: usize = 12;

/// The whole screen.
pub(super) fn render(facts: &Facts) -> String {
    let status = &facts.status;
    let mut lines = vec![title(status)];
    let mut add = |head: &str, content: Vec<String>| {
        for (place, line) in content.into_iter().enumerate() {
            let head = if place == 0 { head } else { "" };
            lines.push(format!("{head:<HEAD$} {line}"));
        }
    };
    add("mode", vec![mode(facts)]);
    add("listeners", listeners(status));
    add("servers", servers(facts));
    add("sessions", vec![sessions(facts)]);
    add("grants", vec![grants(facts)]);
    add("policies", policies(facts));
    add("freezes", freezes(status));
    add("audit", vec![audit(status)]);
    add("reload", vec![reload(status)]);
    add("attention", or_none(attention::find(facts), "nothing"));
    let lines: Vec<String> = lines.iter().map(|line| one_line(line)).collect();
    visible(&(lines.join("\n") + "\n"))
}

fn one_line(line: &str) -> String {
    line.replace('\n', " ").trim_end().to_owned()
}

fn title(status: &Value) -> String {
    let version = text(status, "version").unwrap_or("?");
    let pid = status.get("pid").and_then(Value::as_u64).unwrap_or_default();
    let up = status.get("uptime_s").and_then(Value::as_u64).map(|s| format!(", up {}", age(s)));
    format!("toolgate {version}{}, pid {pid}", up.unwrap_or_default())
}

/// Seconds, for people.
fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} days", seconds / 86_400),
    }
}

fn mode(facts: &Facts) -> String {
    let local = facts.status.get("local").and_then(Value::as_bool) == Some(true);
    match (local, active_grants(facts)) {
        (true, _) => "local: calls without a token are accepted".to_owned(),
        (false, 0) => "closed: there is no grant, so every call is refused".to_owned(),
        (false, _) => "grants: every call needs the token of a grant".to_owned(),
    }
}

fn listeners(status: &Value) -> Vec<String> {
    let line = |name: &&str| {
        let url = text(status, name).or_else(|| text(status.get("listeners")?, name));
        format!("{name:<9} {}", url.unwrap_or("off"))
    };
    ["mcp", "sessions", "admin"].iter().map(line).collect()
}

fn servers(facts: &Facts) -> Vec<String> {
    let width = widest(&facts.servers);
    let line = |server: &Value| {
        let name = text(server, "name").unwrap_or("?");
        let tools = server.get("tools").and_then(Value::as_u64);
        let tools = tools.map_or_else(|| "not listed yet".to_owned(), |n| number_of(n, "tool"));
        let frozen = server.get("frozen").and_then(Value::as_bool) == Some(true);
        let frozen = if frozen { ", frozen" } else { "" };
        let state =
            text(server, "state").map(|state| format!("{}{frozen}, ", state.replace('_', " ")));
        let error = text(server, "last_error").map(|error| format!("; last error: {error}"));
        let error = error.unwrap_or_default();
        format!("{name:<width$}  {}{tools}{error}", state.unwrap_or_default())
    };
    or_none(facts.servers.iter().map(line).collect(), "none")
}

/// The width of the longest name.
fn widest(items: &[Value]) -> usize {
    let names = items.iter().filter_map(|item| text(item, "name"));
    names.map(|name| name.chars().count()).max().unwrap_or(0)
}

fn sessions(facts: &Facts) -> String {
    let count = |state: &str| {
        facts.sessions.iter().filter(|session| text(session, "state") == Some(state)).count()
    };
    let (active, disconnected, anonymous) =
        (count("active"), count("disconnected"), count("anonymous"));
    format!("{active} active, {disconnected} disconnected, {anonymous} not registered")
}

fn is_active(grant: &Value) -> bool {
    grant.get("revoked").is_none_or(Value::is_null)
}

fn active_grants(facts: &Facts) -> usize {
    facts.grants.iter().filter(|grant| is_active(grant)).count()
}

fn grants(facts: &Facts) -> String {
    let active = active_grants(facts);
    let agents = facts.status.get("agent_sessions").and_then(Value::as_u64).unwrap_or_default();
    let revoked = facts.grants.len() - active;
    format!("{active} active, {revoked} revoked; {agents} agent sessions")
}

fn policies(facts: &Facts) -> Vec<String> {
    let width = widest(&facts.policies);
    let line = |policy: &Value| {
        let name = text(policy, "name").unwrap_or("?");
        let hash: Option<String> =
            text(policy, "hash").map(|hash| hash.chars().take(HASH).collect());
        let state = hash.unwrap_or_else(|| "broken".to_owned());
        let source = text(policy, "source").unwrap_or("?");
        let version = policy.get("version").and_then(Value::as_u64);
        let version = version.map(|version| format!(" version {version}")).unwrap_or_default();
        format!("{name:<width$}  {state}  ({source}{version})")
    };
    or_none(facts.policies.iter().map(line).collect(), "none")
}

fn freezes(status: &Value) -> Vec<String> {
    let freezes = status.get("freezes").and_then(Value::as_array).map(Vec::as_slice);
    let line = |item: &Value| {
        let since = cell(item.get("created").unwrap_or(&Value::Null));
        let by = text(item, "person").map(|person| format!(" by {person}")).unwrap_or_default();
        let why = text(item, "reason").map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("{} since {since}{by}{why}", freeze::target(item))
    };
    or_none(freezes.unwrap_or_default().iter().map(line).collect(), "none")
}

fn audit(status: &Value) -> String {
    let audit = status.get("audit").unwrap_or(&Value::Null);
    let number = |name: &str| audit.get(name).and_then(Value::as_u64);
    let rows = number("rows").unwrap_or_default();
    let checkpoint = number("checkpoint")
        .map_or_else(|| "no checkpoint yet".to_owned(), |seq| format!("checkpoint at row {seq}"));
    let open = number("open_calls").unwrap_or_default();
    let durability = text(status, "durability").unwrap_or("?");
    format!(
        "{}, {checkpoint}, {} in flight, durability {durability}",
        number_of(rows, "row"),
        number_of(open, "call")
    )
}

fn reload(status: &Value) -> String {
    let Some(last) = status.get("reload").filter(|last| !last.is_null()) else {
        return "no reload since the start".to_owned();
    };
    let at = cell(last.get("time").unwrap_or(&Value::Null));
    match text(last, "error") {
        // The place and the message; `config check` shows the line itself.
        Some(error) => format!("failed at {at}: {}", error.lines().next().unwrap_or_default()),
        None => format!("succeeded at {at}"),
    }
}

/// `1 row`, `2 rows`.
fn number_of(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn or_none(lines: Vec<String>, none: &str) -> Vec<String> {
    if lines.is_empty() { vec![none.to_owned()] } else { lines }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_screen() {
        let facts = Facts {
            status: json!({
                "version": "0.1.0", "pid": 7, "uptime_s": 7_500, "local": false,
                "mcp": "http://127.0.0.1:4001", "sessions": null, "admin": "http://127.0.0.1:4002",
                "agent_sessions": 2, "durability": "process",
                "audit": {"rows": 1234, "checkpoint": 1200, "open_calls": 1},
                "freezes": [{"id": "f-1", "server": "slow", "created": "2026-11-18T05:00:00.125Z",
                             "person": "duty", "reason": "looping"}],
                "reload": {"time": "2026-11-18T04:00:00Z", "error": "toolgate.yaml:3:1: no\n 3 | x\n"},
            }),
            servers: vec![
                json!({"name": "files", "state": "ready", "tools": 13, "frozen": false}),
                json!({"name": "slow", "state": "failed", "tools": null, "frozen": true,
                       "last_error": "exited with\u{1b} code 1"}),
            ],
            sessions: vec![json!({"session_id": "u1", "state": "active"})],
            grants: vec![
                json!({"label": "a", "policy": "p"}),
                json!({"label": "b", "revoked": "x"}),
            ],
            policies: vec![
                json!({"name": "p", "hash": "0123456789abcdef", "source": "store", "version": 3}),
                json!({"name": "recommended", "hash": "fedcba9876543210", "source": "built-in"}),
            ],
        };
        let expected = "\
toolgate 0.1.0, up 2 h 5 min, pid 7
mode        grants: every call needs the token of a grant
listeners   mcp       http://127.0.0.1:4001
            sessions  off
            admin     http://127.0.0.1:4002
servers     files  ready, 13 tools
            slow   failed, frozen, not listed yet; last error: exited with\\u{1b} code 1
sessions    1 active, 0 disconnected, 0 not registered
grants      1 active, 1 revoked; 2 agent sessions
policies    p            0123456789ab  (store version 3)
            recommended  fedcba987654  (built-in)
freezes     server `slow` since 2026-11-18T05:00:00Z by duty: looping
audit       1234 rows, checkpoint at row 1200, 1 call in flight, durability process
reload      failed at 2026-11-18T04:00:00Z: toolgate.yaml:3:1: no
attention   server `slow` is frozen; `toolgate unfreeze f-1` ends it
            the last reload failed, so the previous configuration is active; `toolgate config check` shows why
            server `slow` has failed; `toolgate server test slow` shows why
";
        assert_eq!(render(&facts), expected);
    }
}
