//! What an agent session is given by the layers above it.
//!
//! An agent session serves one server by itself. Where all servers are shown, it asks what it was
//! opened with.

use std::sync::Arc;

use bytes::Bytes;
use toolgate_admission::call_request::CallRequest;
use toolgate_admission::contained::Work;
use toolgate_mcp::{Notification, Refusal};
use toolgate_upstream::event_buffer::EventBuffer;
use toolgate_upstream::link::Server;

use super::AgentSession;

/// What serves an agent session that sees all servers.
pub(crate) trait Aggregate: Send + Sync {
    /// Starts a request; whatever comes of it, a refusal too, is in `buffer` when the work is done.
    fn start(
        &self,
        session: &Arc<AgentSession>,
        request: CallRequest<'_>,
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
