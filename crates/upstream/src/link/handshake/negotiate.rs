//! Negotiating with a server: which era, and its handshake.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use toolgate_admission::clearance::{Clearance, Closed};
use toolgate_json::{peek, text};
use toolgate_mcp::sessionless::VERSION;
use toolgate_mcp::{Incoming, Limits, Message, Payload, method, parse_server, write};

use super::{HandshakeOutcome, LiveChannel};
use crate::channel::{Channel, Heads, Outbound, SendError, StatusClass};
use crate::era::Era;
use crate::failure::Failure;
use crate::link::discover::{Discovered, PROBE, is_sessionless_error};
use crate::link::inbound::Inbound;
use crate::link::waiting::Waiter;
use crate::link::{FailOnDrop, Link};
use crate::rewrite::error_in;

// === impl Link ===

impl Link {
    /// Negotiates in the era `first`, or else in the other.
    pub(super) async fn negotiate(
        self: &Arc<Self>,
        first: Era,
        limit: Duration,
    ) -> Result<(LiveChannel, HandshakeOutcome), Failure> {
        let mut up = self.connect().await?;
        if first == Era::Sessionless {
            return self.negotiate_sessionless(up, limit).await;
        }
        let opened = self.initialize(&up).await;
        if !is_refused(&opened) {
            return Ok((up, opened?));
        }
        let mut discovered = self.discover(&up, limit).await;
        if matches!(discovered, Discovered::Gone) {
            // Some servers exit after refusing a handshake.
            up = self.connect().await?;
            discovered = self.discover(&up, limit).await;
        }
        if let Discovered::Sessionless(welcome) = discovered {
            self.server.eras.refuses(Era::Sessionful);
            return Ok(sessionless(up, welcome));
        }
        Ok((up, opened?))
    }

    /// Negotiates with a server that is probed first. A slow server may answer the probe after
    /// `initialize` was sent; the late answer is used, because such a server refuses `initialize`.
    async fn negotiate_sessionless(
        self: &Arc<Self>,
        mut up: LiveChannel,
        limit: Duration,
    ) -> Result<(LiveChannel, HandshakeOutcome), Failure> {
        let (discovered, opened) = {
            let probe = self.probe(&up);
            tokio::pin!(probe);
            if let Ok(discovered) = timeout(PROBE.min(limit / 2), &mut probe).await {
                (discovered, None)
            } else {
                let opening = self.initialize(&up);
                tokio::pin!(opening);
                tokio::select! {
                    biased;
                    discovered = &mut probe => match discovered {
                        Discovered::Sessionful | Discovered::Unknown => {
                            (discovered, Some(opening.await))
                        }
                        Discovered::Sessionless(_) | Discovered::Gone => (discovered, None),
                    },
                    opened = &mut opening => {
                        let refused = is_refused(&opened);
                        let late = if refused { probe.await } else { Discovered::Sessionful };
                        (late, Some(opened))
                    }
                }
            }
        };
        let opened = match discovered {
            Discovered::Sessionless(welcome) => return Ok(sessionless(up, welcome)),
            // Some servers exit on a request that they do not know.
            Discovered::Gone => {
                up = self.connect().await?;
                self.initialize(&up).await
            }
            Discovered::Sessionful | Discovered::Unknown => match opened {
                Some(opened) => opened,
                None => self.initialize(&up).await,
            },
        };
        if names_sessionless(&opened)
            && let Discovered::Sessionless(welcome) = self.discover(&up, limit).await
        {
            return Ok(sessionless(up, welcome));
        }
        let accepted = matches!(opened, Ok(HandshakeOutcome::Accepted(_)));
        if accepted && !matches!(discovered, Discovered::Unknown) {
            self.server.eras.refuses(Era::Sessionless);
        }
        Ok((up, opened?))
    }

    /// From here on, any error closes the channel.
    async fn connect(self: &Arc<Self>) -> Result<LiveChannel, Failure> {
        if self.ended.load(Ordering::Acquire) {
            return Err(Failure::unavailable("the agent session has ended"));
        }
        let epoch = self.epochs.fetch_add(1, Ordering::Relaxed) + 1;
        let grant = self.grant_label();
        let inbound = self.inbound(epoch, None);
        let channel = self.server.connector.connect_for(inbound, &grant).await?;
        let (since, tasks) = (Instant::now(), self.tasks.clone());
        let listening = AtomicBool::new(false);
        let gone = CancellationToken::new();
        let (era, running) = (Era::Sessionful, None);
        Ok(LiveChannel { channel, epoch, era, gone, since, listening, tasks, running })
    }

    async fn initialize(self: &Arc<Self>, up: &LiveChannel) -> Result<HandshakeOutcome, Failure> {
        let params = String::from_utf8_lossy(&self.opening);
        let answer = self.handshake_request(up, Closed::INITIALIZE, |number| {
            (write::request(number, method::INITIALIZE, Some(&params)), Heads::new())
        });
        let answer = answer.await?;
        let Ok(Incoming::One(Message::Response(response))) =
            parse_server(&answer, &Limits::default())
        else {
            return Err(Failure::unavailable(
                "its answer to `initialize` is not a JSON-RPC response",
            ));
        };
        match response.payload {
            Payload::Error(_) => Ok(HandshakeOutcome::Rejected(answer.clone())),
            Payload::Result(result) => {
                let version = peek(result, &["protocolVersion"]).ok().flatten().and_then(text);
                let Some(version) = version else {
                    return Err(Failure::unavailable("its handshake has no protocol version"));
                };
                // Some sessionless servers accept `initialize` with a version that has no
                // handshake.
                if version == VERSION {
                    return Ok(HandshakeOutcome::Rejected(answer.clone()));
                }
                up.channel.established(&version);
                self.server.eras.speaks(Era::Sessionful);
                Ok(HandshakeOutcome::Accepted(answer.clone()))
            }
        }
    }

    /// Sends a request before the handshake is complete.
    pub(in crate::link) async fn handshake_request(
        self: &Arc<Self>,
        up: &LiveChannel,
        closed: Closed,
        write: impl FnOnce(u64) -> (Bytes, Heads),
    ) -> Result<Bytes, Failure> {
        let number = self.waiting.number();
        let (tell, mut answer) = oneshot::channel();
        self.waiting.insert(number, Waiter::Own(tell, up.epoch));
        // Fails the request if the agent disconnects or the time limit expires.
        let _unanswered = FailOnDrop { link: Arc::clone(self), number };
        let (body, heads) = write(number);
        let inbound = self.inbound(up.epoch, Some(number));
        let message = Outbound::request(body, heads, Clearance::Closed(closed))?;
        let mut sending = tokio::spawn(send(Arc::clone(&up.channel), message, inbound));
        let sent = tokio::select! {
            biased;
            answered = &mut answer => return answered.unwrap_or_else(|_| gone()),
            sent = &mut sending => sent,
        };
        match sent {
            Ok(Ok(())) => answer.await.unwrap_or_else(|_| gone()),
            // A rejection that is a JSON-RPC error is the server's answer.
            Ok(Err(SendError::Refused { body, .. })) if error_in(&body).is_some() => Ok(body),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(Failure::unavailable("the handshake was aborted")),
        }
    }
}

fn sessionless(mut up: LiveChannel, welcome: Bytes) -> (LiveChannel, HandshakeOutcome) {
    up.era = Era::Sessionless;
    (up, HandshakeOutcome::Accepted(welcome))
}

/// Whether the server has rejected `initialize`.
fn is_refused(opened: &Result<HandshakeOutcome, Failure>) -> bool {
    match opened {
        Ok(HandshakeOutcome::Rejected(_)) => true,
        Err(Failure::Refused { status }) => matches!(
            status.class,
            StatusClass::BadRequest | StatusClass::Credentials | StatusClass::NoEndpoint
        ),
        _ => false,
    }
}

/// Whether the server has rejected `initialize` with an error that proves that it is sessionless.
fn names_sessionless(opened: &Result<HandshakeOutcome, Failure>) -> bool {
    let Ok(HandshakeOutcome::Rejected(answer)) = opened else { return false };
    error_in(answer).is_some_and(is_sessionless_error)
}

async fn send(
    channel: Arc<dyn Channel>,
    message: Outbound,
    inbound: Arc<Inbound>,
) -> Result<(), SendError> {
    channel.send(message, inbound).await
}

fn gone() -> Result<Bytes, Failure> {
    Err(Failure::unavailable("it disconnected during the handshake"))
}
