//! An agent: MCP over streamable HTTP, one connection for every request.

use serde_json::{Value, json};

use crate::gate::Gate;
use crate::wire::{Connection, Events, Head, Reply};

pub(crate) const NEWEST: &str = "2025-11-25";

/// An agent with an agent session.
pub(crate) struct Agent {
    pub(crate) address: String,
    pub(crate) path: String,
    pub(crate) session: String,
    /// A header line, or nothing.
    authorization: String,
    /// The result of `initialize`.
    pub(crate) welcome: Value,
}

impl Agent {
    pub(crate) fn open(gate: &Gate, server: &str) -> Self {
        Self::open_as(gate, server, NEWEST)
    }

    pub(crate) fn open_as(gate: &Gate, server: &str, version: &str) -> Self {
        let opened = Self::open_at(gate, &path(server), version);
        opened.unwrap_or_else(|reply| panic!("not opened: {reply:?}"))
    }

    /// An agent that presents this token.
    pub(crate) fn open_with(gate: &Gate, server: &str, token: &str) -> Self {
        Self::open_at_with(gate, &path(server), token)
    }

    /// The same at any endpoint.
    pub(crate) fn open_at_with(gate: &Gate, path: &str, token: &str) -> Self {
        Self::open_at_as_with(gate, path, NEWEST, token)
    }

    /// The same in any protocol.
    pub(crate) fn open_at_as_with(gate: &Gate, path: &str, version: &str, token: &str) -> Self {
        let authorization = format!("Authorization: Bearer {token}\r\n");
        let reply = initialize_with(gate, path, version, &authorization);
        let opened = Self::opened(gate, path, authorization, reply);
        opened.unwrap_or_else(|reply| panic!("not opened: {reply:?}"))
    }

    /// The same for an agent that can do this.
    pub(crate) fn open_able(gate: &Gate, path: &str, token: &str, capabilities: &Value) -> Self {
        let authorization = format!("Authorization: Bearer {token}\r\n");
        let body = opening(NEWEST)
            .replace(r#""capabilities":{}"#, &format!(r#""capabilities":{capabilities}"#));
        let reply = post(gate, path, &authorization, &body);
        let opened = Self::opened(gate, path, authorization, reply);
        opened.unwrap_or_else(|reply| panic!("not opened: {reply:?}"))
    }

    /// Opens an agent session at any endpoint; the answer if none was opened.
    pub(crate) fn open_at(gate: &Gate, path: &str, version: &str) -> Result<Self, Reply> {
        let reply = initialize_with(gate, path, version, "");
        Self::opened(gate, path, String::new(), reply)
    }

    fn opened(gate: &Gate, path: &str, authorization: String, reply: Reply) -> Result<Self, Reply> {
        let Some(session) = reply.header("mcp-session-id") else { return Err(reply) };
        let (session, welcome) = (session.to_owned(), reply.json());
        assert_eq!(reply.status, 200, "{reply:?}");
        let (address, path) = (gate.mcp(), path.to_owned());
        let agent = Self { address, path, session, authorization, welcome };
        let reply = agent.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert_eq!((reply.status, reply.body.as_str()), (202, ""));
        Ok(agent)
    }

    /// The header line of its token, or nothing.
    pub(crate) fn authorization(&self) -> &str {
        &self.authorization
    }

    /// The head of a POST, up to and without the empty line.
    pub(crate) fn post_head(&self) -> String {
        format!(
            "{}Mcp-Session-Id: {}\r\n{}",
            post_head(&self.address, &self.path, "Content-Type: application/json\r\n"),
            self.session,
            self.authorization
        )
    }

    /// Sends a body and returns the connection on which the answer comes.
    pub(crate) fn begin(&self, body: &str) -> Connection {
        let mut connection = Connection::open(&self.address);
        let head = self.post_head();
        connection.send(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
        connection
    }

    /// Sends a body and reads the answer to its end.
    pub(crate) fn send(&self, body: &str) -> Reply {
        self.begin(body).reply()
    }

    /// Sends a request and reads its answer, be it JSON or the last event of a stream.
    pub(crate) fn request(&self, method: &str, params: &Value) -> Value {
        self.request_raw(method, &params.to_string())
    }

    fn request_raw(&self, method: &str, params: &str) -> Value {
        let id = "\"an id\"";
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        let reply = self.send(&body);
        assert_eq!(reply.status, 200, "{reply:?}");
        let answer = if reply.header("content-type") == Some("application/json") {
            reply.json()
        } else {
            let last = reply.body.lines().rev().find_map(|line| line.strip_prefix("data: "));
            serde_json::from_str(last.unwrap_or_else(|| panic!("{reply:?}"))).unwrap()
        };
        assert_eq!(answer["id"], "an id", "{answer}");
        answer
    }

    /// Calls a tool; its result.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.call_raw(tool, &arguments.to_string())
    }

    /// The same with the spelling of its arguments.
    pub(crate) fn call_raw(&self, tool: &str, arguments: &str) -> Value {
        let params = format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#);
        let answer = self.request_raw("tools/call", &params);
        answer.get("result").unwrap_or_else(|| panic!("{answer}")).clone()
    }

    /// Calls a tool with one text content; the text.
    pub(crate) fn says(&self, tool: &str) -> String {
        let result = self.call(tool, &json!({}));
        assert_ne!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Whether the server answers.
    pub(crate) fn works(&self) -> bool {
        self.request("ping", &json!({}))["result"] == json!({})
    }

    /// Begins a call that is not answered at once.
    pub(crate) fn begin_call(&self, tool: &str, meta: &Value) -> Connection {
        let params = json!({"name": tool, "arguments": {}, "_meta": meta});
        self.begin(&format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#
        ))
    }

    /// GET, for the general stream or to resume one.
    pub(crate) fn get(&self, headers: &str) -> Connection {
        let mut connection = Connection::open(&self.address);
        let Self { address, path, session, .. } = self;
        connection.send(
            format!(
                "GET {path} HTTP/1.1\r\nHost: {address}\r\nMcp-Session-Id: {session}\r\n{headers}\r\n"
            )
            .as_bytes(),
        );
        connection
    }

    /// Resumes a stream after this event.
    pub(crate) fn resume(&self, event: &str) -> Events {
        Events::of(self.get(&format!("Accept: text/event-stream\r\nLast-Event-ID: {event}\r\n")))
    }

    pub(crate) fn delete(&self) -> Head {
        self.delete_with("")
    }

    /// The same with further headers.
    pub(crate) fn delete_with(&self, headers: &str) -> Head {
        let Self { address, path, session, .. } = self;
        let mut connection = Connection::open(address);
        connection.send(
            format!(
                "DELETE {path} HTTP/1.1\r\nHost: {address}\r\nMcp-Session-Id: {session}\r\n{headers}\r\n"
            )
            .as_bytes(),
        );
        connection.head()
    }
}

/// The answer to an `initialize`.
pub(crate) fn initialize(gate: &Gate, server: &str, version: &str) -> Reply {
    initialize_with(gate, &path(server), version, "")
}

/// The same at any endpoint and with further headers.
pub(crate) fn initialize_with(gate: &Gate, path: &str, version: &str, headers: &str) -> Reply {
    post(gate, path, headers, &opening(version))
}

/// The answer to a body without an agent session.
fn post(gate: &Gate, path: &str, headers: &str, body: &str) -> Reply {
    let address = gate.mcp();
    let headers = format!("Content-Type: application/json\r\n{headers}");
    let head = post_head(&address, path, &headers);
    let mut connection = Connection::open(&address);
    connection.send(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    connection.reply()
}

/// The body of an `initialize`.
pub(crate) fn opening(version: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"e2e","version":"1"}}}}}}"#
    )
}

/// The head of a POST with these headers, up to and without the empty line.
pub(crate) fn post_head(address: &str, path: &str, headers: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\n\
         Accept: application/json, text/event-stream\r\n{headers}"
    )
}

pub(crate) fn path(server: &str) -> String {
    format!("/mcp/{server}")
}
