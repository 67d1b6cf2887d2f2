//! Channels: how the gateway exchanges messages with one server, whatever the transport.
//!
//! A [`Connector`] makes a [`Channel`] (a child process, an HTTP endpoint); what the server sends
//! arrives at an [`Inbox`]. The edge implements connectors and channels, the gateway implements
//! inboxes.
//!
//! Invariant: a channel never reads or changes a message. Ids, tokens and the handshake belong to
//! [`crate::link`].
//! Invariant: a channel receives only messages that are cleared
//! ([`toolgate_admission::clearance`]).
//! Invariant: an [`Inbox`] never blocks; a channel may call it from any task.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::relay::RelayWriter;
pub use toolgate_admission::clearance::{Cleared, FinalCheck, Heads, Outbound, Uncleared};

/// A boxed future, so that channels can be trait objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Makes channels to one server.
pub trait Connector: Send + Sync + 'static {
    /// Starts the child or prepares the endpoint. `inbox` receives everything that belongs to no
    /// exchange: all output of a child, and the server's own stream of an HTTP server.
    fn connect(&self, inbox: Arc<dyn Inbox>) -> BoxFuture<'_, Result<Arc<dyn Channel>, SendError>>;

    /// As [`Self::connect`], on behalf of the grant of this label.
    fn connect_for<'a>(
        &'a self,
        inbox: Arc<dyn Inbox>,
        grant: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn Channel>, SendError>> {
        let _ = grant;
        self.connect(inbox)
    }

    /// Starts a child before the first connection, which then gets it. Does nothing for a server that
    /// runs already.
    fn start_ahead(&self, grant: &str) {
        let _ = grant;
    }

    /// Ends the child that was started ahead, if no connection has taken it.
    fn end_ahead(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// The last lines that the server printed for its operator; none if it has no such output.
    fn log_tail(&self) -> Vec<String> {
        Vec::new()
    }
}

/// One live connection to a server.
pub trait Channel: Send + Sync + 'static {
    /// Sends one message, once. For a child this resolves when the message is queued, or with a
    /// [`FinalCheck`] when it is about to be written. For HTTP it resolves when the exchange is over;
    /// everything the exchange brings is delivered to `exchange` before that.
    fn send(
        &self,
        message: Outbound,
        exchange: Arc<dyn Inbox>,
    ) -> BoxFuture<'_, Result<(), SendError>>;

    /// The handshake is complete: every further HTTP request names this protocol version.
    fn established(&self, version: &str);

    /// Whether every request has an exchange of its own, so that dropping the exchange cancels it.
    fn exchange_per_request(&self) -> bool {
        false
    }

    /// Whether the server ends with the channel, and all its work with it.
    fn ends_server(&self) -> bool {
        true
    }

    /// Keeps the server's own stream open (HTTP GET) until the channel is closed, and reopens it
    /// after an interruption. Returns at once if there is no such stream.
    fn listen(&self) -> BoxFuture<'_, ()>;

    /// Closes the channel: ends the child and its process group, or the HTTP session (DELETE).
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Receives what a server sends.
pub trait Inbox: Send + Sync + 'static {
    /// Receives one JSON-RPC message (or a batch), unchanged.
    fn message(&self, body: Bytes) -> Progress;

    /// A large message of `size` bytes begins like this. Returns a writer if it is an answer that
    /// may be relayed while it arrives; then `message` receives only its outline.
    fn begins(&self, beginning: &Bytes, size: usize) -> Option<RelayWriter> {
        let _ = (beginning, size);
        None
    }

    /// The server ended its stream before the answer and expects a reconnect (SSE polling). The
    /// channel reconnects; the exchange continues.
    fn paused(&self, retry: Option<Duration>);

    /// Resolves when the agent has reconnected after [`Inbox::paused`]; then the channel does not
    /// wait any longer.
    fn resumed(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    /// The channel has closed (the child exited, the stream violated the protocol); `why` is for
    /// people.
    fn closed(&self, why: &str);
}

/// Whether an exchange has received its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// More messages are expected.
    Expecting,
    /// The answer has arrived; the exchange may be closed.
    Answered,
}

/// An HTTP status that is not an answer, as the transport classifies it.
///
/// The gateway decides by the class and shows the number; only transports compare numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedStatus {
    /// The number, for messages.
    pub number: u16,
    /// Its meaning.
    pub class: StatusClass,
}

/// What a server means by rejecting an HTTP request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusClass {
    /// It cannot process the request.
    BadRequest,
    /// It does not accept the credentials.
    Credentials,
    /// There is no MCP endpoint, or not for this method.
    NoEndpoint,
    /// It does not accept the host name.
    WrongHost,
    /// It redirects to another address.
    Redirect,
    /// Another error of the client.
    OtherClientError,
    /// An error of the server.
    ServerError,
}

impl std::fmt::Display for RefusedStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.number.fmt(f)
    }
}

/// Why a message had no answer, and with it whether the tool may have run.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum SendError {
    /// It was not sent: no process, no connection, a full queue. Effect: not started.
    #[error("{0}")]
    NotSent(String),
    /// It was not sent, because it is no longer allowed ([`FinalCheck`]). Effect: not started.
    #[error("it is no longer allowed")]
    NoLongerAllowed,
    /// It was sent, and the server no longer knows the session. Effect: unknown.
    #[error("the server has lost the session")]
    SessionLost,
    /// It was sent, and the server rejected it with an HTTP status that is not an answer. Effect:
    /// unknown, because a server may execute a request and then answer with any status.
    #[error("the server answered HTTP {status}")]
    Refused {
        /// The HTTP status.
        status: RefusedStatus,
        /// The response body, cut to 64 KiB.
        body: Bytes,
    },
    /// It was sent, and no answer arrived. Effect: unknown.
    #[error("{0}")]
    Lost(String),
}
