//! Requests of servers that an agent has not answered yet.

use std::sync::{Arc, Weak};

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::Link;
use crate::event_buffer::EventBuffer;

/// A request of a server that the agent has not answered yet.
pub struct ServerRequest {
    /// The link over which the server sent it; none for a question of toolgate itself.
    pub link: Weak<Link>,
    /// The epoch of the channel over which the server sent it.
    pub epoch: u64,
    /// Who receives the answer.
    pub requester: Requester,
    /// The stream on which the agent received it.
    pub buffer: Arc<EventBuffer>,
    /// When it times out.
    pub until: Instant,
}

/// Who receives an agent's answer.
pub enum Requester {
    /// The server, which waits for it.
    Server {
        /// The id and the progress token as the server spelled them.
        id: Box<str>,
        /// `None` if the server wants no progress notifications.
        token: Option<Box<str>>,
    },
    /// A call to a sessionless server, which continues with the answer.
    Call {
        /// The key under which the server expects the answer.
        key: Box<str>,
        /// The raw result; `None` if the agent answered with an error.
        tell: mpsc::UnboundedSender<(Box<str>, Option<String>)>,
    },
    /// A held call, whose user answers it: the raw result, or `None` for an error.
    Hold(oneshot::Sender<Option<String>>),
}
