//! `my_permissions`: what a grant may do, as its agents see it.

use serde_json::{Value, json};

use crate::agent::{Agent, post_head};
use crate::api::Api;
use crate::gate::{Gate, Home, eventually};
use crate::peer::Peer;
use crate::program::{Card, Program, tool_of};
use crate::wire::Connection;

const TEAM: &str = "token-of-the-grant-team-0123456789";
const OPEN: &str = "token-of-the-grant-open-0123456789";
const NONE: &str = "token-of-the-grant-none-0123456789";

const CONFIG: &str = "policies:
  team:
    version: '1'
    default: deny
    hide: [pid, secret]
    tools:
      echo: { limits: [{ counter: echo_rate, window: 30d, max: 3, scope: grant }] }
      find: { action: deny, reason: not today }
      my_permissions: { rate_limit: 100/day }
      session_list: { approve: {} }
  open: { version: '1', default: allow, mode: shadow, hide: [pid] }
grants:
  - { label: team, token: env:TEAM, identity: sales, policy: team }
  - { label: open, token: env:OPEN, policy: open }
  - { label: none, token: env:NONE }
servers:
";

/// A gateway with a server that lists `echo` and `pid`, and a session with `find` and `secret`.
fn gate() -> (Gate, Program) {
    let home = Home::new();
    let peer = Peer::new(&home, "files");
    let config = format!("{CONFIG}{}", peer.entry("listing", ""));
    let gate = Gate::start_as(home, &config, |command| {
        command.envs([("TEAM", TEAM), ("OPEN", OPEN), ("NONE", NONE)]);
    });
    let tools = json!([tool_of("find"), tool_of("secret")]);
    let program = Program::register(&gate, &Card::new("u1", "").with(tools));
    (gate, program)
}

/// The same, asked in protocol 2026-07-28.
fn modern(gate: &Gate, token: &str) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "e2e", "version": "1"},
    });
    let params = json!({"name": "my_permissions", "arguments": {}, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let (address, body) = (gate.mcp(), body.to_string());
    let headers = format!(
        "Content-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: my_permissions\r\nAuthorization: Bearer {token}\r\n"
    );
    let head = post_head(&address, "/mcp", &headers);
    let mut connection = Connection::open(&address);
    connection.send(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    connection.reply().json()["result"].clone()
}

fn reported(agent: &Agent) -> Value {
    agent.call("my_permissions", &json!({}))["structuredContent"].clone()
}

/// Each tool with its effect and rule.
fn effects(reported: &Value) -> Vec<String> {
    let tools = reported["tools"].as_array().unwrap_or_else(|| panic!("{reported}"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let line = |tool: &Value| [&tool["name"], &tool["effect"], &tool["rule"]].map(text).join(" ");
    tools.iter().map(|tool| line(tool).trim_end().to_owned()).collect()
}

fn tool<'a>(reported: &'a Value, name: &str) -> &'a Value {
    let tools = reported["tools"].as_array().unwrap();
    tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{reported}"))
}

#[test]
fn an_agent_reads_what_its_grant_may_do_and_what_is_left() {
    let (gate, _program) = gate();
    let agent = Agent::open_at_with(&gate, "/mcp", TEAM);
    let first = reported(&agent);
    assert_eq!(
        [&first["grant"], &first["identity"], &first["policy"], &first["mode"]],
        [&json!("team"), &json!("sales"), &json!("team"), &json!("enforce")]
    );
    let expected = [
        "session_list hold /tools/session_list/approve",
        "my_permissions allow",
        "find deny /tools/find/action",
        "files__echo allow",
    ];
    assert_eq!(effects(&first), expected, "as they are listed, without what is hidden");
    let classes: Vec<_> =
        first["tools"].as_array().unwrap().iter().map(|it| &it["class"]).collect();
    assert_eq!(classes, ["read", "read", "read", "other"]);
    let limit = &tool(&first, "files__echo")["limits"][0];
    let resets = limit["resets_at"].as_str().unwrap();
    assert!(resets.ends_with("T00:00:00Z"), "{resets}");
    let left = |used: u8| json!([{"counter": "echo_rate", "used": used, "max": 3, "window": "30d", "resets_at": resets}]);
    assert_eq!(tool(&first, "files__echo")["limits"], left(0));
    assert_eq!(tool(&first, "find")["limits"], json!([]));
    // The call itself is counted before it looks.
    assert_eq!(tool(&first, "my_permissions")["limits"][0]["used"], 1);

    for used in 1..=3 {
        agent.call("files__echo", &json!({}));
        assert_eq!(tool(&reported(&agent), "files__echo")["limits"], left(used));
    }
    let spent = reported(&agent);
    let echo = &effects(&spent)[3];
    assert_eq!(echo, "files__echo deny /tools/echo/limits/echo_rate");
    let result = modern(&gate, TEAM);
    assert_eq!(result["resultType"], "complete");
    let (mut one, mut other) = (spent, result["structuredContent"].clone());
    for reported in [&mut one, &mut other] {
        // Only what asking itself uses differs.
        reported["tools"][1]["limits"] = Value::Null;
    }
    assert_eq!(one, other, "the same in both eras");

    let sessions = Agent::open_at_with(&gate, "/mcp/sessions", TEAM);
    assert_eq!(effects(&reported(&sessions)), expected[..3], "what that endpoint shows");
    let wrong = agent.call("my_permissions", &json!({"grant": "open"}));
    assert_eq!(wrong["_meta"]["error_code"], "invalid_arguments");
}

#[test]
fn each_grant_reads_its_own_permissions() {
    let (gate, _program) = gate();
    let reported = reported(&Agent::open_at_with(&gate, "/mcp", OPEN));
    assert_eq!(
        [&reported["grant"], &reported["identity"], &reported["policy"], &reported["mode"]],
        [&json!("open"), &Value::Null, &json!("open"), &json!("shadow")]
    );
    // A document in shadow hides nothing, and reports what it will do once it is enforced.
    assert_eq!(effects(&reported)[5..], ["files__echo allow", "files__pid deny (hidden)"]);
    let refused = Agent::open_at_with(&gate, "/mcp", NONE).call("my_permissions", &json!({}));
    assert_eq!(refused["_meta"]["rule"], "(no policy)");
}

#[test]
fn it_is_decided_counted_and_written_down_like_any_call() {
    let (gate, _program) = gate();
    let agent = Agent::open_at_with(&gate, "/mcp", TEAM);
    reported(&agent);
    let api = Api::admin(&gate);
    let rows = eventually("both rows are written", || {
        let rows = api.get("audit?tool=my_permissions")["items"].as_array().unwrap().clone();
        (rows.len() == 2).then_some(rows)
    });
    let words = |row: &Value| {
        let word = |key: &str| row[key].as_str().unwrap_or("-").to_owned();
        ["kind", "server", "grant", "decision", "outcome"].map(word).join(" ")
    };
    let reported: Vec<_> = rows.iter().map(words).collect();
    assert_eq!(reported, ["intent toolgate team allow -", "outcome toolgate team - ok"]);
    assert_eq!(rows[0]["counters"][0]["counter"], "my_permissions_rate", "{}", rows[0]);
}
