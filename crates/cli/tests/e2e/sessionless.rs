//! An agent of protocol 2026-07-28: no session, each request describes itself.

use serde_json::{Value, json};

use crate::agent::post_head;
use crate::gate::Gate;
use crate::wire::{Connection, Reply};

/// A client at one endpoint.
pub(crate) struct Sessionless {
    address: String,
    path: String,
    /// A header line, or nothing.
    authorization: String,
    capabilities: Value,
}

impl Sessionless {
    pub(crate) fn new(gate: &Gate, path: &str) -> Self {
        Self {
            address: gate.mcp(),
            path: path.to_owned(),
            authorization: String::new(),
            capabilities: json!({}),
        }
    }

    /// The same, with this token.
    pub(crate) fn with_token(self, token: &str) -> Self {
        Self { authorization: format!("Authorization: Bearer {token}\r\n"), ..self }
    }

    /// The same, for a client that can do this.
    pub(crate) fn able(self, capabilities: Value) -> Self {
        Self { capabilities, ..self }
    }

    /// Its description in `_meta`.
    pub(crate) fn meta(&self) -> Value {
        json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            "io.modelcontextprotocol/clientInfo": {"name": "e2e", "version": "1"},
        })
    }

    /// Sends a body with these headers and nothing more of the protocol.
    pub(crate) fn begin(&self, headers: &str, body: &str) -> Connection {
        let Self { address, path, authorization, .. } = self;
        let headers = format!("Content-Type: application/json\r\n{authorization}{headers}");
        let head = post_head(address, path, &headers);
        let mut connection = Connection::open(address);
        connection.send(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
        connection
    }

    /// Calls a tool with these members of `params` beside its name, and these further headers.
    pub(crate) fn call(&self, tool: &str, headers: &str, members: Value) -> Reply {
        let mut params = members;
        params["name"] = tool.into();
        params["_meta"] = self.meta();
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
        let headers = format!(
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n{headers}"
        );
        self.begin(&headers, &body.to_string()).reply()
    }

    /// Begins a call that is not answered at once, with this progress token and these further
    /// members of `params`.
    pub(crate) fn begin_call(&self, tool: &str, token: &Value, members: &Value) -> Connection {
        let mut params = members.clone();
        (params["name"], params["arguments"]) = (tool.into(), json!({}));
        params["_meta"] = self.meta();
        params["_meta"]["progressToken"] = token.clone();
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
        let headers = format!(
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
        );
        self.begin(&headers, &body.to_string())
    }
}

/// The last message of an answer, be it JSON or a stream.
pub(crate) fn last(reply: &Reply) -> Value {
    if reply.header("content-type") == Some("application/json") {
        return reply.json();
    }
    let last = reply.body.lines().rev().find_map(|line| line.strip_prefix("data: "));
    serde_json::from_str(last.unwrap_or_else(|| panic!("{reply:?}"))).unwrap()
}
