//! A small MCP client: handshake, one request at a time, close.
//!
//! It declares no capabilities: requests of servers are answered with "method not found", except for
//! `ping`. Results keep their bytes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolgate_control::visible;
use toolgate_edge::remote::{HttpTransport, RemoteConnector, RemoteSpec};
use toolgate_gateway::channel::{Channel, Connector as _, Inbox, Outbound, Progress, SendError};

use super::endpoint::Endpoint;
use crate::data::client_of;
use crate::print;

const VERSION: &str = "2025-11-25";
/// A list with more pages never ends.
const MAX_PAGES: usize = 10_000;

/// Why there is no result.
#[derive(Debug)]
pub(super) enum Failed {
    /// The message or its answer was lost.
    Transport(SendError),
    /// The exchange ended without an answer.
    NoAnswer,
    /// A JSON-RPC error.
    Rpc { code: i64, message: String },
    /// The answer is not valid.
    Malformed(String),
}

pub(super) struct Client {
    channel: Arc<dyn Channel>,
    next: u64,
}

/// The parts of a message that this client uses.
#[derive(Deserialize)]
struct Message<'a> {
    id: Option<Value>,
    method: Option<String>,
    params: Option<Value>,
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

/// Receives the messages of one exchange; the answer to `id` ends it.
struct Exchange {
    id: Option<u64>,
    received: mpsc::UnboundedSender<Bytes>,
}

impl Inbox for Exchange {
    fn message(&self, body: Bytes) -> Progress {
        let message = serde_json::from_slice::<Message<'_>>(&body);
        let ends = message.is_ok_and(|message| {
            message.method.is_none() && message.id.and_then(|id| id.as_u64()) == self.id
        });
        if self.received.send(body).is_err() {
            tracing::debug!("message after the end of its exchange");
        }
        if ends { Progress::Answered } else { Progress::Expecting }
    }

    fn paused(&self, _retry: Option<Duration>) {}

    fn closed(&self, why: &str) {
        tracing::debug!(why, "stream closed by the gateway");
    }
}

impl Client {
    pub(super) async fn open(endpoint: &Endpoint) -> Result<Self, Failed> {
        let mut spec = RemoteSpec::new("toolgate", endpoint.url.clone());
        spec.transport = HttpTransport::Streamable;
        spec.headers.extend(endpoint.authorization.clone().map(|value| (AUTHORIZATION, value)));
        let (received, _) = mpsc::unbounded_channel();
        let connector = RemoteConnector::new(client_of(&endpoint.ready), spec);
        let channel = connector
            .connect(Arc::new(Exchange { id: None, received }))
            .await
            .map_err(Failed::Transport)?;
        let mut client = Self { channel, next: 0 };
        let me = json!({"name": "toolgate-cli", "version": env!("CARGO_PKG_VERSION")});
        let hello = json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": me});
        let welcome = client.request("initialize", &hello).await?;
        let welcome: Value = parse(&welcome)?;
        let version = welcome.get("protocolVersion").and_then(Value::as_str).unwrap_or(VERSION);
        client.channel.established(version);
        client.notify(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        Ok(client)
    }

    /// Every page of `tools/list`.
    pub(super) async fn tools(&mut self) -> Result<Vec<Box<RawValue>>, Failed> {
        let mut tools = Vec::new();
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let page: ToolsPage = parse(&self.request("tools/list", &params).await?)?;
            tools.extend(page.tools);
            match page.next {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return Ok(tools),
            }
        }
        Err(Failed::Malformed(format!("its list of tools has more than {MAX_PAGES} pages")))
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
            #[serde(rename = "_meta")]
            meta: Value,
        }
        let meta = json!({"progressToken": "toolgate-cli"});
        self.request("tools/call", &Params { name: tool, arguments, meta }).await
    }

    pub(super) async fn close(self) {
        self.channel.close().await;
    }

    async fn request(
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
        let body = serde_json::to_vec(&request).map_err(malformed)?;
        let (received, mut inbox) = mpsc::unbounded_channel();
        let exchange = Arc::new(Exchange { id: Some(self.next), received });
        let message = Outbound::of_agent(body.into(), true);
        let mut sending = self.channel.send(message, exchange);
        // The sender is dropped with the exchange, so the loop ends with it.
        let mut sent = false;
        loop {
            tokio::select! {
                biased;
                message = inbox.recv() => match message {
                    Some(body) => {
                        if let Some(result) = self.handle(&body).await? {
                            return Ok(result);
                        }
                    }
                    None => return Err(Failed::NoAnswer),
                },
                done = &mut sending, if !sent => {
                    done.map_err(Failed::Transport)?;
                    sent = true;
                }
            }
        }
    }

    /// The result, if this message is the answer; requests of the server are answered.
    async fn handle(&self, body: &[u8]) -> Result<Option<Box<RawValue>>, Failed> {
        let message: Message<'_> = serde_json::from_slice(body).map_err(malformed)?;
        match (&message.method, &message.id) {
            (Some(method), Some(id)) => {
                let answer = if method == "ping" {
                    json!({"jsonrpc": "2.0", "id": id, "result": {}})
                } else {
                    let error =
                        json!({"code": -32601, "message": "this client supports no requests"});
                    json!({"jsonrpc": "2.0", "id": id, "error": error})
                };
                self.notify(&answer).await?;
                return Ok(None);
            }
            (Some(method), None) => {
                if let Some(params) = message.params.filter(|_| method == "notifications/progress")
                {
                    print::err(&format!("{}\n", visible(&progress(&params))));
                }
                return Ok(None);
            }
            (None, _) => {}
        }
        if let Some(error) = &message.error {
            let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
            let text = error
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or("an error without a message");
            return Err(Failed::Rpc { code, message: text.to_owned() });
        }
        match message.result {
            Some(result) => Ok(Some(result.to_owned())),
            None => Err(Failed::Malformed("an answer without a result".to_owned())),
        }
    }

    async fn notify(&self, message: &Value) -> Result<(), Failed> {
        let (received, _) = mpsc::unbounded_channel();
        let message = Outbound::of_agent(message.to_string().into(), false);
        let exchange = Arc::new(Exchange { id: None, received });
        self.channel.send(message, exchange).await.map_err(Failed::Transport)
    }
}

/// A progress notification for people: `progress 3/10: copying`.
fn progress(params: &Value) -> String {
    let number = |name: &str| params.get(name).filter(|value| value.is_number());
    let done = number("progress").map(|done| format!(" {done}")).unwrap_or_default();
    let total = number("total").map(|total| format!("/{total}")).unwrap_or_default();
    let message = params.get("message").and_then(Value::as_str);
    let message = message.map(|text| format!(": {}", text.replace('\n', " ")));
    format!("progress{done}{total}{}", message.unwrap_or_default())
}

fn parse<'a, T: Deserialize<'a>>(text: &'a RawValue) -> Result<T, Failed> {
    serde_json::from_str(text.get()).map_err(malformed)
}

fn malformed(error: impl std::fmt::Display) -> Failed {
    Failed::Malformed(error.to_string())
}
