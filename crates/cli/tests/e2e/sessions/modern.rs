//! Clients of protocol 2026-07-28 and programs that dial in.

use serde_json::{Value, json};

use super::text;
use crate::agent::post_head;
use crate::gate::Gate;
use crate::program::{Card, Program};
use crate::wire::{Connection, Events};

fn begin(gate: &Gate, path: &str, method: &str, name: &str, params: Value) -> Connection {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "e2e", "version": "1"},
    });
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string();
    let name = if name.is_empty() { String::new() } else { format!("Mcp-Name: {name}\r\n") };
    let headers = format!(
        "Content-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: {method}\r\n{name}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let address = gate.mcp();
    let mut connection = Connection::open(&address);
    connection.send(post_head(&address, path, &headers).as_bytes());
    connection
}

fn ask(gate: &Gate, path: &str, method: &str, name: &str, params: Value) -> Value {
    let reply = begin(gate, path, method, name, params).reply();
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()["result"].clone()
}

fn names(gate: &Gate, path: &str) -> Vec<String> {
    let tools = ask(gate, path, "tools/list", "", json!({}));
    let tools = tools["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn they_receive_changes_and_call_tools_of_sessions() {
    let gate = Gate::start("");
    for (path, uid) in [("/mcp/sessions", "one"), ("/mcp", "two")] {
        let filter = json!({"notifications": {"toolsListChanged": true}});
        let mut stream = Events::of(begin(&gate, path, "subscriptions/listen", "", filter));
        let mut hears = |expected: &str| {
            let (_, message) = stream.message().unwrap();
            assert_eq!(message["method"], expected, "{path}: {message}");
            let meta = &message["params"]["_meta"];
            assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], 7, "{path}: {message}");
        };
        hears("notifications/subscriptions/acknowledged");
        let tool = format!("find_{uid}");
        assert!(!names(&gate, path).contains(&tool));
        let mut program = Program::register(&gate, &Card::new(uid, &tool));
        hears("notifications/tools/list_changed");
        assert!(names(&gate, path).contains(&tool));
        let result = std::thread::scope(|scope| {
            let params = json!({"name": tool, "arguments": {"Имя": "Ёлка"}});
            let call = scope.spawn(|| ask(&gate, path, "tools/call", &tool, params));
            assert_eq!(program.serve("нашлась")["arguments"], json!({"Имя": "Ёлка"}));
            call.join().unwrap()
        });
        assert_eq!((text(&result), &result["resultType"]), ("нашлась", &json!("complete")));
        program.notify("session.tools_changed", &json!({"tools": []}));
        hears("notifications/tools/list_changed");
        assert!(!names(&gate, path).contains(&tool));
    }
}
