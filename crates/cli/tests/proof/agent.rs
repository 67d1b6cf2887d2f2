//! An agent whose gateway may vanish at any moment: MCP over one keep-alive connection, and every
//! break is an error that the caller sees, never a panic.

use std::io::{self, Error, ErrorKind};

use serde_json::{Value, json};
use toolgate_testkit::client::{Answer, Connection};

/// One agent session on one connection.
pub(crate) struct Agent {
    connection: Connection,
    address: String,
    path: String,
    session: String,
    /// A header line, or nothing.
    authorization: String,
    next: u64,
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// The text of the tool.
    Done(String),
    /// The `error_code` of a refusal, and the whole result.
    Refused(String, Value),
}

impl Agent {
    /// Connects and opens an agent session.
    pub(crate) async fn open(address: &str, path: &str, token: Option<&str>) -> io::Result<Self> {
        let authorization =
            token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        let mut agent = Self {
            connection: Connection::open(address).await?,
            address: address.to_owned(),
            path: path.to_owned(),
            session: String::new(),
            authorization,
            next: 1,
        };
        let about = json!({"name": "proof", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let answer = agent.exchange(&hello.to_string()).await?;
        let session = answer.session.as_ref();
        let session = session.ok_or_else(|| Error::other(format!("not opened: {answer:?}")))?;
        agent.session = format!("Mcp-Session-Id: {session}\r\n");
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        agent.exchange(&ready.to_string()).await?;
        Ok(agent)
    }

    /// Calls a tool with `mark` as its argument.
    pub(crate) async fn call(&mut self, tool: &str, mark: &str) -> io::Result<Said> {
        let id = self.next;
        self.next += 1;
        let params = json!({"name": tool, "arguments": {"mark": mark}});
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        let received = self.exchange(&call.to_string()).await?;
        if received.status != 200 {
            return Err(Error::other(format!("HTTP {received:?}")));
        }
        let messages = received.messages.iter();
        let mut messages = messages.filter_map(|text| serde_json::from_str::<Value>(text).ok());
        let answer = messages.find(|message| message["id"] == id);
        let answer = answer.ok_or_else(|| Error::other(format!("no answer in {received:?}")))?;
        let result = &answer["result"];
        match result["_meta"]["error_code"].as_str() {
            Some(code) => Ok(Said::Refused(code.to_owned(), result.clone())),
            None => match result["content"][0]["text"].as_str() {
                Some(text) => Ok(Said::Done(text.to_owned())),
                None => panic!("neither a result nor a refusal: {answer}"),
            },
        }
    }

    async fn exchange(&mut self, body: &str) -> io::Result<Answer> {
        let Self { address, path, session, authorization, .. } = self;
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\n{session}{authorization}\
             Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let exchange = async {
            self.connection.send(&request).await?;
            self.connection.receive().await
        };
        exchange.await.inspect_err(|error| {
            assert_ne!(error.kind(), ErrorKind::TimedOut, "no answer came");
        })
    }
}
