//! Relays a client that only speaks stdio to the endpoint of a running gateway, which decides and
//! records: `toolgate run --gateway`.
//!
//! Invariant: messages pass unchanged. Only the headers of the transport are added.
//! Invariant: a request is sent again only if the gateway answered that it does not know the agent
//! session, which it answers before it reads the request.
//!
//! Start at [`relay`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_gateway::channel::{
    Channel, Connector as _, Heads, Inbox, Outbound, Progress, SendError,
};
use toolgate_mcp::sessionless::{heads_of, is_sessionless};
use toolgate_mcp::{Incoming, Limits, Message, Payload, code, method, parse_server, write};

use crate::remote::RemoteConnector;
use crate::stdio_lines::{Line, LineReader, too_long};
use crate::stdio_output::{Output, stopped_and_stuck, write_to};

/// The limits of a relay.
#[derive(Debug, Clone, Copy)]
pub struct RelayLimits {
    /// The longest message of the client.
    pub body: usize,
    /// How long calls may run after the end of the input.
    pub grace: Duration,
}

struct Relay {
    connector: RemoteConnector,
    out: Output,
    state: Mutex<State>,
    calls: TaskTracker,
    closing: CancellationToken,
}

#[derive(Default)]
struct State {
    channel: Option<Arc<dyn Channel>>,
    /// The client's `initialize`, to open an agent session again.
    opening: Option<Bytes>,
    /// Running sessionless requests, by raw id.
    requests: HashMap<String, CancellationToken>,
}

/// Relays until the input ends, the client stops reading, or `stop` is cancelled.
pub async fn relay(
    connector: RemoteConnector,
    limits: RelayLimits,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    stop: &CancellationToken,
) {
    let (out, writer) = write_to(output);
    let relay = Arc::new(Relay {
        connector,
        out,
        state: Mutex::default(),
        calls: TaskTracker::new(),
        closing: CancellationToken::new(),
    });
    tokio::select! {
        () = relay.read(limits.body, input, stop) => {}
        () = relay.out.is_over() => {}
        () = stopped_and_stuck(&relay.out, stop) => {}
    }
    relay.calls.close();
    tokio::select! {
        () = relay.calls.wait() => {}
        () = tokio::time::sleep(limits.grace) => {
            tracing::warn!(calls = relay.calls.len(), "grace period over; running calls aborted");
        }
        () = relay.out.is_stuck() => {}
    }
    relay.closing.cancel();
    let channel = relay.state.lock().channel.take();
    if let Some(channel) = channel {
        channel.close().await;
    }
    drop(relay);
    writer.finish().await;
}

impl Relay {
    async fn read(
        self: &Arc<Self>,
        limit: usize,
        input: impl AsyncRead + Unpin,
        stop: &CancellationToken,
    ) {
        let mut lines = LineReader::new(input, limit);
        while let Some(line) = lines.next(&self.out, stop).await {
            self.receive(line, limit).await;
        }
    }

    async fn receive(self: &Arc<Self>, line: Line, limit: usize) {
        let line = match line {
            Line::Message(line) => line,
            Line::TooLong => return self.send(too_long(limit)),
        };
        // The gateway checks the message; here only its kind matters.
        let (id, name, params) = match parse_server(&line, &Limits::default()) {
            Ok(Incoming::One(Message::Request(it))) => {
                (Some(it.id.to_owned()), it.method.into_owned(), it.params.map(str::to_owned))
            }
            Ok(Incoming::One(Message::Notification(it))) => {
                (None, it.method.into_owned(), it.params.map(str::to_owned))
            }
            Ok(Incoming::One(Message::Response(_))) => (None, String::new(), None),
            Ok(Incoming::Batch(_)) => (Some("null".to_owned()), String::new(), None),
            Err(refusal) => {
                let (id, why) = (refusal.id.as_deref(), refusal.message.as_str());
                return self.send(write::error(id, refusal.code, why, None));
            }
        };
        let heads = if is_sessionless(None, params.as_deref()) {
            heads_of(&String::from_utf8_lossy(&line))
        } else {
            Heads::new()
        };
        match id {
            Some(id) if name == method::INITIALIZE => self.open(&id, line).await,
            Some(id) => self.start(id, &name, line, heads),
            None => {
                if name == method::CANCELLED {
                    self.cancel(params.as_deref());
                }
                self.pass(&name, line, heads).await;
            }
        }
    }

    /// Opens an agent session of the gateway.
    async fn open(self: &Arc<Self>, id: &str, line: Bytes) {
        let before = {
            let mut state = self.state.lock();
            state.opening = Some(line.clone());
            state.channel.take()
        };
        if let Some(before) = before {
            before.close().await;
        }
        let inbox =
            Arc::new(ToClient { out: self.out.clone(), shown: true, seen: Mutex::default() });
        if let Err(error) = self.connect(line, inbox).await {
            self.send(failed(id, &error));
        }
    }

    async fn connect(&self, opening: Bytes, inbox: Arc<ToClient>) -> Result<(), SendError> {
        let general =
            Arc::new(ToClient { out: self.out.clone(), shown: true, seen: Mutex::default() });
        let channel = self.connector.connect(general).await?;
        let seen = Arc::clone(&inbox);
        channel.send(Outbound::of_agent(opening, true), inbox).await?;
        if let Some(version) = seen.seen.lock().take() {
            channel.established(&version);
        }
        self.state.lock().channel = Some(channel);
        Ok(())
    }

    fn start(self: &Arc<Self>, id: String, name: &str, line: Bytes, heads: Heads) {
        let (me, is_endless) = (Arc::clone(self), name == method::LISTEN);
        let cancel = if is_endless { self.closing.child_token() } else { CancellationToken::new() };
        if !heads.is_empty() {
            self.state.lock().requests.insert(id.clone(), cancel.clone());
        }
        let work = async move {
            cancel.run_until_cancelled(me.request(&id, line, heads)).await;
            me.state.lock().requests.remove(&id);
        };
        if is_endless {
            tokio::spawn(work);
        } else {
            self.calls.spawn(work);
        }
    }

    async fn request(&self, id: &str, line: Bytes, heads: Heads) {
        let sent = match self.exchange(&line, &heads).await {
            Err(SendError::SessionLost) => match self.reopen().await {
                Ok(()) => self.exchange(&line, &heads).await,
                Err(error) => Err(error),
            },
            sent => sent,
        };
        if let Err(error) = sent {
            self.send(failed(id, &error));
        }
    }

    async fn exchange(&self, line: &Bytes, heads: &Heads) -> Result<(), SendError> {
        let channel = self.channel().await?;
        let inbox =
            Arc::new(ToClient { out: self.out.clone(), shown: true, seen: Mutex::default() });
        let message = Outbound::of_agent_with(line.clone(), true, heads.clone());
        channel.send(message, inbox).await
    }

    /// The channel; without a handshake (2026-07-28) it is made with the first request.
    async fn channel(&self) -> Result<Arc<dyn Channel>, SendError> {
        if let Some(channel) = self.state.lock().channel.clone() {
            return Ok(channel);
        }
        let general =
            Arc::new(ToClient { out: self.out.clone(), shown: true, seen: Mutex::default() });
        let channel = self.connector.connect(general).await?;
        Ok(Arc::clone(self.state.lock().channel.get_or_insert(channel)))
    }

    /// The gateway was restarted: opens the agent session again, unnoticed by the client.
    async fn reopen(&self) -> Result<(), SendError> {
        let opening = self.state.lock().opening.clone().ok_or(SendError::SessionLost)?;
        let inbox =
            Arc::new(ToClient { out: self.out.clone(), shown: false, seen: Mutex::default() });
        self.connect(opening, inbox).await?;
        let body = write::notification(method::INITIALIZED, None);
        self.pass(method::INITIALIZED, body, Heads::new()).await;
        tracing::info!("the gateway was restarted; agent session opened again");
        Ok(())
    }

    /// Passes on what has no answer.
    async fn pass(&self, name: &str, line: Bytes, heads: Heads) {
        let sent = async {
            let channel = self.channel().await?;
            let inbox = ToClient { out: self.out.clone(), shown: true, seen: Mutex::default() };
            let message = Outbound::of_agent_with(line, false, heads);
            channel.send(message, Arc::new(inbox)).await?;
            if name == method::INITIALIZED {
                let closing = self.closing.clone();
                tokio::spawn(async move { closing.run_until_cancelled(channel.listen()).await });
            }
            Ok::<(), SendError>(())
        };
        if let Err(error) = sent.await {
            tracing::warn!(%error, "a notification did not reach the gateway");
        }
    }

    fn cancel(&self, params: Option<&str>) {
        let params: Option<Value> = params.and_then(|params| serde_json::from_str(params).ok());
        let Some(id) = params.as_ref().and_then(|params| params.get("requestId")) else { return };
        if let Some(running) = self.state.lock().requests.get(&id.to_string()) {
            running.cancel();
        }
    }

    fn send(&self, message: Bytes) {
        self.out.push(message);
    }
}

/// Writes what arrives to the client.
struct ToClient {
    out: Output,
    /// Whether the answer is for the client.
    shown: bool,
    /// The protocol version of an answer to `initialize`.
    seen: Mutex<Option<String>>,
}

impl Inbox for ToClient {
    fn message(&self, body: Bytes) -> Progress {
        let mut answers = false;
        if let Ok(Incoming::One(Message::Response(response))) =
            parse_server(&body, &Limits::default())
        {
            answers = true;
            if let Payload::Result(result) = response.payload {
                let result: Option<Value> = serde_json::from_str(result).ok();
                let version = result.as_ref().and_then(|it| it.get("protocolVersion"));
                *self.seen.lock() = version.and_then(Value::as_str).map(str::to_owned);
            }
        }
        if self.shown || !answers {
            self.out.push(body);
        }
        if answers { Progress::Answered } else { Progress::Expecting }
    }

    fn paused(&self, _retry: Option<Duration>) {}

    fn closed(&self, why: &str) {
        tracing::debug!(why, "stream closed by the gateway");
    }
}

/// The answer to a request that the gateway did not answer.
fn failed(id: &str, error: &SendError) -> Bytes {
    let why = match error {
        SendError::Refused { status, .. } if status.number == 401 => {
            "the gateway needs the token of a grant, or does not know this one: pass it with --token \
             env:NAME"
                .to_owned()
        }
        SendError::Refused { status, .. } if status.number == 404 => {
            "the gateway has no such endpoint for this grant; correct --gateway".to_owned()
        }
        error => format!("the gateway cannot be reached: {error}"),
    };
    write::error(Some(id), code::INTERNAL_ERROR, &why, None)
}
