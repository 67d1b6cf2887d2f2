//! Channels: how the gateway talks to one server, whatever carries the bytes.
//!
//! A [`Connector`] makes a [`Channel`] (a child process, an HTTP endpoint); what the server says
//! comes back through an [`Inbox`]. The edge implements connectors and channels, the gateway
//! implements inboxes; neither knows the other's insides.
//!
//! Invariant: a channel never reads or changes a message. Ids, tokens and the handshake belong to
//! [`crate::link`].
//! Invariant: a channel is given only messages that are cleared ([`toolgate_admission::clearance`]).
//! Invariant: an [`Inbox`] never blocks; a channel may call it from any task.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::relay::RelayWriter;
pub use toolgate_admission::clearance::{Cleared, Heads, LastLook, Outbound, Uncleared};

/// A boxed future, so that channels can be trait objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Makes channels to one server.
pub trait Connector: Send + Sync + 'static {
    /// Starts the child or prepares the endpoint. `inbox` hears whatever belongs to no exchange:
    /// everything a child prints, and what an HTTP server says on its own stream.
    fn connect(&self, inbox: Arc<dyn Inbox>) -> BoxFuture<'_, Result<Arc<dyn Channel>, SendError>>;
}

/// One live way to a server.
pub trait Channel: Send + Sync + 'static {
    /// Sends one message, once. For a child this resolves when the message is queued, or with a
    /// [`LastLook`] when it is about to be written; for HTTP when the exchange that it opened is
    /// over, and whatever the exchange brings goes to `exchange` before.
    fn send(
        &self,
        message: Outbound,
        exchange: Arc<dyn Inbox>,
    ) -> BoxFuture<'_, Result<(), SendError>>;

    /// The handshake is done: from now on every HTTP request names this protocol version.
    fn established(&self, version: &str);

    /// Whether every request has an exchange of its own, so that whoever drops it has hung up.
    fn exchange_per_request(&self) -> bool {
        false
    }

    /// Keeps the server's own stream open (HTTP GET) until the channel is closed; it comes back
    /// by itself after an interruption. Returns at once where there is no such stream.
    fn listen(&self) -> BoxFuture<'_, ()>;

    /// Ends the channel: the child and its whole process group, or the HTTP session (DELETE).
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Where what a server says arrives.
pub trait Inbox: Send + Sync + 'static {
    /// One JSON-RPC message (or a batch), as it came.
    fn message(&self, body: Bytes) -> Progress;

    /// A large message begins like this, and all of it will have `size` bytes. If it is an answer
    /// that may go on while it comes, where to; then its outline is the message to be heard.
    fn begins(&self, beginning: &Bytes, size: usize) -> Option<RelayWriter> {
        let _ = (beginning, size);
        None
    }

    /// The server has ended its stream before the answer and wants to be asked again (SSE polling).
    /// The channel does so by itself; the exchange goes on.
    fn paused(&self, retry: Option<Duration>);

    /// The channel itself has ended (the child exited, the stream broke its rules); `why` is for people.
    fn closed(&self, why: &str);
}

/// Whether an exchange has had its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// TaskStream is awaited.
    Expecting,
    /// The answer has come; the exchange may be wound up.
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
    /// It never left: no process, no connection, a full queue. Effect: not started.
    #[error("{0}")]
    NotSent(String),
    /// It was not sent, because it is no longer allowed ([`LastLook`]). Effect: not started.
    #[error("it is no longer allowed")]
    NoLongerAllowed,
    /// It was sent, and the server does not know our session (any more). Effect: unknown.
    #[error("the server has forgotten the session")]
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
    /// It was sent and the answer never came. Effect: unknown.
    #[error("{0}")]
    Lost(String),
}
