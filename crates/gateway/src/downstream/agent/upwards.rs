//! What an agent session is given by the layers above it.
//!
//! An agent session serves one server by itself. Where all servers are shown, and where it stands
//! for clients of protocol 2026-07-28, it asks what it was opened with.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;
use toolgate_admission::multi_round::{Newer, Steps};
use toolgate_mcp::{Notification, Refusal, Request};
use toolgate_upstream::event_buffer::EventBuffer;
use toolgate_upstream::link::Server;
use toolgate_upstream::work::Work;

use super::AgentSession;

/// What serves an agent session that sees all servers.
pub(crate) trait Aggregate: Send + Sync {
    /// Starts a request; whatever comes of it, a refusal too, is in `buffer` when the work is done.
    fn start(
        &self,
        session: &Arc<AgentSession>,
        request: &Request<'_>,
        buffer: &Arc<EventBuffer>,
    ) -> Result<Work, Refusal>;

    /// Receives a notification of a server that belongs to no request.
    fn hear(
        &self,
        session: &AgentSession,
        server: &Server,
        notification: &Notification<'_>,
        body: &Bytes,
    );

    /// Tells the agent, a little later and once, if what it was shown has changed.
    fn tell_changed(&self, session: &Arc<AgentSession>);
}

/// What is kept with an agent session that stands for clients of protocol 2026-07-28.
pub(crate) trait ClientState: Any + Send + Sync {
    /// What the audit and policies know the clients by.
    fn known_as(&self) -> &Arc<str>;

    /// The other end of a call in several rounds, by the number of its buffer.
    fn take_steps(&self, buffer: u64) -> Option<(Steps, Newer)>;

    /// The agent session of that key has ended.
    fn hang_up(&self, session: u64);
}
