//! The gate of scripted servers: a channel of the tests takes no message that needs a permit and
//! has none.
//!
//! The list here is written down a second time, on purpose: it is the contract, and the gateway's
//! own list is what is tested.

use serde_json::Value;
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
    let Ok(Value::Object(message)) = serde_json::from_slice(body) else { return false };
    let has = |key: &str| message.contains_key(key);
    match (message.get("method"), has("id")) {
        (Some(Value::String(method)), true) => OPEN.contains(&method.as_str()),
        (Some(Value::String(method)), false) => method.starts_with("notifications/"),
        (Some(_), _) => false,
        (None, _) => has("result") != has("error") && has("id"),
    }
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
