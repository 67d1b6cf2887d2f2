//! Questions of servers that an agent has not answered yet.

use std::sync::{Arc, Weak};

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Link;
use crate::event_buffer::Outlet;

/// A request of a server that the agent has not answered yet.
pub struct Asked {
    /// The link over which the server asked.
    pub link: Weak<Link>,
    /// The channel of that link over which it asked.
    pub epoch: u64,
    /// Who wants the answer.
    pub asker: Asker,
    /// Where the agent was asked.
    pub outlet: Arc<Outlet>,
    /// How long its answer is waited for.
    pub until: Instant,
}

/// Who wants an agent's answer.
pub enum Asker {
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
