//! Questions of servers that an agent has not answered yet.

use std::sync::{Arc, Weak};

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Link;
use crate::upstream::event_buffer::Outlet;

/// A request of a server that the agent has not answered yet.
pub(crate) struct Asked {
    pub(crate) link: Weak<Link>,
    pub(crate) epoch: u64,
    pub(crate) asker: Asker,
    /// Where the agent was asked.
    pub(crate) outlet: Arc<Outlet>,
    /// How long its answer is waited for.
    pub(crate) until: Instant,
}

/// Who wants an agent's answer.
pub(crate) enum Asker {
    /// The server, which waits for it.
    Server {
        /// The id and the progress token as the server spelled them.
        id: Box<str>,
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
