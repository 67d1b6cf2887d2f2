//! Questions of servers that an agent has not answered yet.

use std::sync::{Arc, Weak};

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Link;
use crate::event_buffer::EventBuffer;

/// A request of a server that the agent has not answered yet.
pub struct ServerRequest {
    /// The link over which the server asked.
    pub link: Weak<Link>,
    /// The channel of that link over which it asked.
    pub epoch: u64,
    /// Who wants the answer.
    pub requester: Requester,
    /// Where the agent was asked.
    pub buffer: Arc<EventBuffer>,
    /// How long its answer is waited for.
    pub until: Instant,
}

/// Who wants an agent's answer.
pub enum Requester {
    /// The server, which waits for it.
    Server {
        /// The id and the progress token as the server spelled them.
        id: Box<str>,
        /// None if the server wants to hear of no progress.
        token: Option<Box<str>>,
    },
    /// A call to a server of protocol 2026-07-28, which goes on with it.
    Call {
        /// Under which name the server wants the answer.
        key: Box<str>,
        /// The raw result; none if the agent answered with an error.
        tell: mpsc::UnboundedSender<(Box<str>, Option<String>)>,
    },
}
