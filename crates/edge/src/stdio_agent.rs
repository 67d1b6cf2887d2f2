//! One agent over standard input and output: `toolgate run` in place of a server.
//!
//! Each line is one message, as over HTTP: a sessionful agent opens one agent session with
//! `initialize`, a sessionless one (2026-07-28) describes itself in every request. What a server sends
//! outside of a request is written as it arrives.
//!
//! Invariant: nothing is decided here; every message takes the path that it takes over HTTP.
//! Invariant: the end of the input ends no running call: its answer is written first, within `grace`,
//! as long as the client reads.
//!
//! Start at [`serve`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_gateway::event_buffer::{First, Next};
use toolgate_gateway::{AgentSession, Attached, Call, Endpoint, EventId, Gateway, Grant, refused};
use toolgate_mcp::sessionless::is_sessionless;
use toolgate_mcp::{Incoming, Limits, Message, Request, Version, code, method, parse_agent, write};

use crate::agents::AgentLimits;
use crate::stdio_lines::{Line, LineReader, too_long};
use crate::stdio_output::{Output, stopped_and_stuck, write_to};

mod opening;
mod sessionless;

/// What an agent is connected to.
pub struct Served {
    /// The gateway.
    pub gateway: Arc<Gateway>,
    /// The endpoint that it sees.
    pub endpoint: Endpoint,
    /// The limits of its messages.
    pub limits: AgentLimits,
    /// How long its calls may run after the end of the input.
    pub grace: Duration,
}

/// The state of the agent.
struct Agent {
    served: Served,
    out: Output,
    /// Its running calls.
    calls: TaskTracker,
    /// Ends streams that have no end of their own.
    closing: CancellationToken,
    /// Its sessionful session, by id.
    session: Mutex<Option<Arc<AgentSession>>>,
    /// Its running sessionless requests, by raw id.
    requests: Mutex<HashMap<String, CancellationToken>>,
}

/// Serves an agent until its input ends, it stops reading, or `stop` is cancelled.
pub async fn serve(
    served: Served,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    stop: &CancellationToken,
) {
    let (out, writer) = write_to(output);
    let grace = served.grace;
    let agent = Arc::new(Agent {
        served,
        out,
        calls: TaskTracker::new(),
        closing: CancellationToken::new(),
        session: Mutex::default(),
        requests: Mutex::default(),
    });
    tokio::select! {
        () = agent.read(input, stop) => {}
        () = agent.out.is_over() => {}
        () = stopped_and_stuck(&agent.out, stop) => {}
    }
    agent.calls.close();
    tokio::select! {
        () = agent.calls.wait() => {}
        () = tokio::time::sleep(grace) => {
            tracing::warn!(calls = agent.calls.len(), "grace period over; running calls aborted");
        }
        () = agent.out.is_stuck() => {}
    }
    agent.closing.cancel();
    let session = agent.session.lock().take();
    if let Some(session) = session {
        agent.served.gateway.end(&session);
    }
    // The writer ends with the last sender.
    drop(agent);
    writer.finish().await;
}

impl Agent {
    async fn read(self: &Arc<Self>, input: impl AsyncRead + Unpin, stop: &CancellationToken) {
        let mut lines = LineReader::new(input, self.served.limits.body);
        while let Some(line) = lines.next(&self.out, stop).await {
            self.receive(line).await;
        }
    }

    async fn receive(self: &Arc<Self>, line: Line) {
        match line {
            Line::Message(line) => self.handle(line).await,
            Line::TooLong => self.send(too_long(self.served.limits.body)).await,
        }
    }

    async fn handle(self: &Arc<Self>, line: Bytes) {
        let limits = Limits { depth: self.served.limits.depth, ..Limits::default() };
        let message = match parse_agent(&line, &limits) {
            Ok(message) => message,
            Err(refusal) => return self.send(refused(&refusal)).await,
        };
        if is_of_sessionless(&message) {
            self.sessionless(&line, &message, &limits);
            return;
        }
        if let Incoming::One(Message::Request(request)) = &message
            && request.method == method::INITIALIZE
        {
            return self.open(request).await;
        }
        if let Incoming::One(Message::Notification(notification)) = &message
            && notification.method == method::CANCELLED
        {
            self.cancel(notification.params);
        }
        match self.session() {
            Some(session) => self.sessionful(&session, message).await,
            None => self.refuse_unopened(&message).await,
        }
    }

    async fn sessionful(self: &Arc<Self>, session: &Arc<AgentSession>, message: Incoming<'_>) {
        match message {
            Incoming::One(Message::Request(request)) => self.request(session, &request).await,
            Incoming::One(Message::Notification(notification)) => {
                if notification.method == method::INITIALIZED {
                    self.listen(session);
                }
                if let Err(refusal) = session.notify(&notification).await {
                    tracing::debug!(why = refusal.message, "notification rejected");
                }
            }
            Incoming::One(Message::Response(response)) => session.respond(&response).await,
            Incoming::Batch(_) if session.version() != Some(Version::V2025_03_26) => {
                let why = "batches exist only in protocol 2025-03-26; send the messages one by one";
                self.send(write::error(None, code::INVALID_REQUEST, why, None)).await;
            }
            Incoming::Batch(members) => {
                if let Some(call) = session.batch(&members).await {
                    self.follow_call(session, call);
                }
            }
        }
    }

    async fn request(self: &Arc<Self>, session: &Arc<AgentSession>, request: &Request<'_>) {
        match session.request(request) {
            Ok(call) => self.follow_call(session, call),
            Err(refusal) => self.send(refused(&refusal)).await,
        }
    }

    /// Writes the messages of a call as they arrive.
    fn follow_call(self: &Arc<Self>, session: &Arc<AgentSession>, mut call: Call) {
        let (me, session) = (Arc::clone(self), Arc::clone(session));
        self.calls.spawn(async move {
            match call.first().await {
                First::Answer(answer, _) => me.send(answer.into_bytes()).await,
                First::Stream => {
                    let attached = session.stream(&call);
                    // Its work continues in a task of its own.
                    drop(call);
                    me.follow(&session, attached).await;
                }
            }
        });
    }

    async fn follow(&self, session: &Arc<AgentSession>, mut attached: Attached) {
        let (stream, mut last) = (attached.number(), 0);
        loop {
            match attached.next().await {
                Next::Event(event, body) => {
                    last = event;
                    self.send(body).await;
                }
                // An HTTP client would reconnect here.
                Next::Pause(_) => match session.resume(&EventId { stream, event: last }) {
                    Some(again) => attached = again,
                    None => return,
                },
                Next::Gap => tracing::warn!("messages lost: the client reads too slowly"),
                Next::End => return,
            }
        }
    }

    /// Writes what belongs to no request, until the end.
    fn listen(self: &Arc<Self>, session: &Arc<AgentSession>) {
        let (me, session) = (Arc::clone(self), Arc::clone(session));
        let attached = session.listen();
        tokio::spawn(async move {
            let closing = me.closing.clone();
            closing.run_until_cancelled(me.follow(&session, attached)).await;
        });
    }

    async fn send(&self, message: Bytes) {
        self.out.send(message).await;
    }

    /// The grant, as it is now.
    fn caller(&self) -> Option<Arc<Grant>> {
        self.served.gateway.admission().caller(None)
    }
}

fn is_of_sessionless(message: &Incoming<'_>) -> bool {
    let params = match message {
        Incoming::One(Message::Request(request)) => request.params,
        Incoming::One(Message::Notification(notification)) => notification.params,
        Incoming::One(Message::Response(_)) | Incoming::Batch(_) => None,
    };
    is_sessionless(None, params)
}
