//! The gate of scripted servers: a channel of the tests takes no message that needs a permit and
//! has none.
//!
//! The list here is written down a second time, on purpose: it is the contract, and the gateway's
//! own list is what is tested.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use toolgate_gateway::channel::{Cleared, Outbound};

/// Requests that need no permit.
pub(crate) const OPEN: [&str; 10] = [
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "logging/setLevel",
    "resources/unsubscribe",
    "subscriptions/listen",
];

/// Ends the test if the message may not be here. A panic would not: the gateway contains it.
#[expect(clippy::print_stderr, reason = "an aborted test has no other way to say why")]
pub(crate) fn watch(message: &Outbound) {
    if let Err(why) = judge(message) {
        eprintln!("a server was sent {why}");
        std::process::abort();
    }
}

/// Why a message may not be sent to a server.
pub(crate) fn judge(message: &Outbound) -> Result<(), String> {
    let body = message.body();
    match message.cleared() {
        Cleared::Permit(_) => Ok(()),
        Cleared::Closed if is_open(body) => Ok(()),
        cleared => Err(format!("{cleared:?} {}", String::from_utf8_lossy(body))),
    }
}

/// Whether a message is on the closed list, whoever says so.
pub(crate) fn is_open(body: &[u8]) -> bool {
    // Values as they are: some that pass are none that serde_json can hold.
    let Ok(message) = serde_json::from_slice::<BTreeMap<String, &RawValue>>(body) else {
        return false;
    };
    let has = |key: &str| message.contains_key(key);
    let Some(method) = message.get("method") else {
        return has("result") != has("error") && has("id");
    };
    let Ok(method) = serde_json::from_str::<String>(method.get()) else { return false };
    if has("id") { OPEN.contains(&method.as_str()) } else { method.starts_with("notifications/") }
}

#[test]
fn the_gate_notices_what_may_not_pass() {
    for body in [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
    ] {
        // What an agent may send to a gateway has no business here, whatever it is.
        let planted = Outbound::of_agent(body.into(), true);
        judge(&planted).unwrap_err();
    }
    for body in [
        r#"{"jsonrpc":"2.0","id":1,"method":"tasks/list"}"#,
        r#"{"jsonrpc":"2.0","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"notifications/x"}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
        r#"{"jsonrpc":"2.0","id":1,"method":["ping"]}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
    ] {
        assert!(!is_open(body.as_bytes()), "{body}");
    }
}
