//! A small MCP client for one conversation: handshake, one request after another, farewell.
//!
//! It has no capabilities, so what a server asks of it is answered with "method not found", and a
//! ping with a pong. Results are kept as the text they came as.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolgate_edge::remote::{HttpTransport, RemoteConnector, RemoteSpec};
use toolgate_gateway::channel::{Channel, Connector as _, Inbox, Outbound, Progress, SendError};

use super::endpoint::Endpoint;
use crate::data::client_of;

const VERSION: &str = "2025-11-25";
/// More pages than this are no list but a circle.
const MAX_PAGES: usize = 10_000;

/// Why there is no result.
#[derive(Debug)]
pub(super) enum Failed {
    /// The message did not get there, or its answer not back.
    Way(SendError),
    /// The exchange ended without an answer.
    Silent,
    /// A JSON-RPC error.
    Answer { code: i64, message: String },
    /// What came is no answer at all.
    Strange(String),
}

pub(super) struct Client {
    channel: Arc<dyn Channel>,
    next: u64,
}

/// One message, as far as this client looks into it.
#[derive(Deserialize)]
struct Message<'a> {
    id: Option<Value>,
    method: Option<String>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct ToolsPage {
    tools: Vec<Box<RawValue>>,
    #[serde(rename = "nextCursor")]
    next: Option<String>,
}

/// Hears one exchange; `id` is whose answer ends it.
struct Ear {
    id: Option<u64>,
    heard: mpsc::UnboundedSender<Bytes>,
}

impl Inbox for Ear {
    fn message(&self, body: Bytes) -> Progress {
        let message = serde_json::from_slice::<Message<'_>>(&body);
        let ends = message.is_ok_and(|message| {
            message.method.is_none() && message.id.and_then(|id| id.as_u64()) == self.id
        });
        if self.heard.send(body).is_err() {
            tracing::debug!("nobody waits for this message any more");
        }
        if ends { Progress::Answered } else { Progress::Expecting }
    }

    fn paused(&self, _retry: Option<Duration>) {}

    fn closed(&self, why: &str) {
        tracing::debug!(why, "the gateway ended a stream");
    }
}

impl Client {
    pub(super) async fn open(endpoint: &Endpoint) -> Result<Self, Failed> {
        let mut spec = RemoteSpec::new("toolgate", endpoint.url.clone());
        spec.transport = HttpTransport::Streamable;
        spec.headers.extend(endpoint.authorization.clone().map(|value| (AUTHORIZATION, value)));
        let (heard, _) = mpsc::unbounded_channel();
        let connector = RemoteConnector::new(client_of(&endpoint.ready), spec);
        let channel =
            connector.connect(Arc::new(Ear { id: None, heard })).await.map_err(Failed::Way)?;
        let mut client = Self { channel, next: 0 };
        let me = json!({"name": "toolgate-cli", "version": env!("CARGO_PKG_VERSION")});
        let hello = json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": me});
        let welcome = client.ask("initialize", &hello).await?;
        let welcome: Value = parse(&welcome)?;
        let version = welcome.get("protocolVersion").and_then(Value::as_str).unwrap_or(VERSION);
        client.channel.established(version);
        client.tell(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        Ok(client)
    }

    /// Every page of `tools/list`.
    pub(super) async fn tools(&mut self) -> Result<Vec<Box<RawValue>>, Failed> {
        let mut tools = Vec::new();
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let page: ToolsPage = parse(&self.ask("tools/list", &params).await?)?;
            tools.extend(page.tools);
            match page.next {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return Ok(tools),
            }
        }
        Err(Failed::Strange(format!("its list of tools has more than {MAX_PAGES} pages")))
    }

    pub(super) async fn call(
        &mut self,
        tool: &str,
        arguments: &RawValue,
    ) -> Result<Box<RawValue>, Failed> {
        #[derive(serde::Serialize)]
        struct Params<'a> {
            name: &'a str,
            arguments: &'a RawValue,
        }
        self.ask("tools/call", &Params { name: tool, arguments }).await
    }

    pub(super) async fn close(self) {
        self.channel.close().await;
    }

    async fn ask(
        &mut self,
        method: &str,
        params: &impl serde::Serialize,
    ) -> Result<Box<RawValue>, Failed> {
        #[derive(serde::Serialize)]
        struct Request<'a, P> {
            jsonrpc: &'a str,
            id: u64,
            method: &'a str,
            params: &'a P,
        }
        self.next += 1;
        let request = Request { jsonrpc: "2.0", id: self.next, method, params };
        let body = serde_json::to_vec(&request).map_err(strange)?;
        let (heard, mut hear) = mpsc::unbounded_channel();
        let ear = Arc::new(Ear { id: Some(self.next), heard });
        let message = Outbound::of_agent(body.into(), true);
        let mut sending = self.channel.send(message, ear);
        // The ear goes with the exchange, so this ends when the exchange does.
        let mut sent = false;
        loop {
            tokio::select! {
                biased;
                said = hear.recv() => match said {
                    Some(body) => {
                        if let Some(result) = self.hear(&body).await? {
                            return Ok(result);
                        }
                    }
                    None => return Err(Failed::Silent),
                },
                done = &mut sending, if !sent => {
                    done.map_err(Failed::Way)?;
                    sent = true;
                }
            }
        }
    }

    /// The result, if this message is the answer; what the server asks is answered.
    async fn hear(&self, body: &[u8]) -> Result<Option<Box<RawValue>>, Failed> {
        let message: Message<'_> = serde_json::from_slice(body).map_err(strange)?;
        match (&message.method, &message.id) {
            (Some(method), Some(id)) => {
                let answer = if method == "ping" {
                    json!({"jsonrpc": "2.0", "id": id, "result": {}})
                } else {
                    let error =
                        json!({"code": -32601, "message": "this client answers no questions"});
                    json!({"jsonrpc": "2.0", "id": id, "error": error})
                };
                self.tell(&answer).await?;
                return Ok(None);
            }
            (Some(_), None) => return Ok(None),
            (None, _) => {}
        }
        if let Some(error) = &message.error {
            let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
            let said = error
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or("an error without a message");
            return Err(Failed::Answer { code, message: said.to_owned() });
        }
        match message.result {
            Some(result) => Ok(Some(result.to_owned())),
            None => Err(Failed::Strange("an answer without a result".to_owned())),
        }
    }

    async fn tell(&self, message: &Value) -> Result<(), Failed> {
        let (heard, _) = mpsc::unbounded_channel();
        let message = Outbound::of_agent(message.to_string().into(), false);
        let ear = Arc::new(Ear { id: None, heard });
        self.channel.send(message, ear).await.map_err(Failed::Way)
    }
}

fn parse<'a, T: Deserialize<'a>>(text: &'a RawValue) -> Result<T, Failed> {
    serde_json::from_str(text.get()).map_err(strange)
}

fn strange(error: impl std::fmt::Display) -> Failed {
    Failed::Strange(error.to_string())
}
