//! Correct answers: from a message to a message, without I/O.
//!
//! Tools: `echo` returns its argument `text`, `count` the number of calls so far.

use serde::Deserialize;
use serde_json::{Value, json};

use super::FaultyServer;

const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const LATEST: &str = "2025-11-25";
const NEWER: &str = "2026-07-28";

/// A message of the client, as far as it is needed.
#[derive(Debug, Deserialize)]
pub(crate) struct ClientMessage {
    pub(crate) id: Option<Value>,
    pub(crate) method: Option<String>,
    #[serde(default)]
    pub(crate) params: Value,
}

/// The state of one server.
#[derive(Debug)]
pub(crate) struct ServerState {
    server: FaultyServer,
    amount: u64,
    calls: u64,
    reads: u64,
}

impl ClientMessage {
    /// Whether it is a request with this method.
    pub(crate) fn asks(&self, method: &str) -> bool {
        self.id.is_some() && self.is(method)
    }

    pub(crate) fn is(&self, method: &str) -> bool {
        self.method.as_deref() == Some(method)
    }
}

impl ServerState {
    pub(crate) fn new(server: FaultyServer, amount: u64) -> Self {
        Self { server, amount, calls: 0, reads: 0 }
    }

    /// The correct answer; `None` if the message is not a request.
    pub(crate) fn answer(&mut self, message: &ClientMessage) -> Option<Value> {
        let (Some(id), Some(method)) = (&message.id, &message.method) else { return None };
        let outcome = match method.as_str() {
            "initialize" if !self.is_newer() => Ok(self.welcome(&message.params)),
            "server/discover" if self.is_newer() => Ok(json!({
                "supportedVersions": [NEWER],
                "capabilities": {"tools": {}},
                "ttlMs": 0,
                "cacheScope": "public",
            })),
            "ping" => Ok(json!({})),
            "tools/list" => {
                self.reads += 1;
                Ok(json!({"tools": self.tools()}))
            }
            "tools/call" => {
                self.calls += 1;
                self.call(&message.params)
            }
            _ => Err((-32601, "unknown method")),
        };
        Some(match outcome {
            Ok(mut result) => {
                if let (true, Some(result)) = (self.is_newer(), result.as_object_mut()) {
                    result.insert("resultType".to_owned(), json!("complete"));
                }
                result_of(id, &result)
            }
            Err((code, message)) => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
            }
        })
    }

    /// Whether it speaks only the protocol without a handshake.
    fn is_newer(&self) -> bool {
        self.server == FaultyServer::ShufflingNewer
    }

    fn welcome(&self, params: &Value) -> Value {
        let asked = params.get("protocolVersion").and_then(Value::as_str);
        let version = asked.filter(|asked| VERSIONS.contains(asked)).unwrap_or(LATEST);
        json!({
            "protocolVersion": version,
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": self.server.name(), "version": "1.0.0"},
        })
    }

    fn tools(&self) -> Vec<Value> {
        let mut tools = vec![tool("echo"), tool("count")];
        match self.server {
            FaultyServer::ManyTools => {
                tools.extend((2..self.amount).map(|number| tool(&format!("tool-{number}"))));
            }
            FaultyServer::ChangingList => {
                tools.push(tool(&format!("read-{}", self.reads)));
                if self.reads.is_multiple_of(2) {
                    tools.reverse();
                }
            }
            _ => {}
        }
        tools
    }

    fn call(&self, params: &Value) -> Result<Value, (i32, &'static str)> {
        let text = match params.get("name").and_then(Value::as_str) {
            Some("echo") => {
                let text = params.pointer("/arguments/text").and_then(Value::as_str);
                text.ok_or((-32602, "`echo` needs a `text`"))?.to_owned()
            }
            Some("count") => self.calls.to_string(),
            _ => return Err((-32602, "unknown tool")),
        };
        let mut content = vec![json!({"type": "text", "text": text})];
        if self.server == FaultyServer::LongLine {
            let length = usize::try_from(self.amount).unwrap_or(usize::MAX);
            content.push(json!({"type": "text", "text": "x".repeat(length)}));
        }
        Ok(json!({"content": content}))
    }
}

/// A result with one text.
pub(crate) fn text_of(id: &Value, text: &str) -> Value {
    result_of(id, &json!({"content": [{"type": "text", "text": text}]}))
}

fn result_of(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn tool(name: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    json!({"name": name, "description": "A tool of a faulty server.", "inputSchema": schema})
}
