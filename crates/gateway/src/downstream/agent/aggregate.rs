//! The interface to the layer that serves `/mcp`.
//!
//! An agent session serves one server by itself. On `/mcp` it delegates to an [`Aggregate`].

use std::sync::Arc;

use bytes::Bytes;
use toolgate_admission::call_request::CallRequest;
use toolgate_admission::contained::Work;
use toolgate_mcp::{Notification, Refusal};
use toolgate_upstream::event_buffer::EventBuffer;
use toolgate_upstream::link::Server;

use super::AgentSession;

/// Serves agent sessions that see all servers.
pub(crate) trait Aggregate: Send + Sync {
    /// Starts a request; when the work is done, its answer is in `buffer`.
    fn start(
        &self,
        session: &Arc<AgentSession>,
        request: CallRequest<'_>,
        buffer: &Arc<EventBuffer>,
    ) -> Result<Work, Refusal>;

    /// Receives a notification of a server that belongs to no request.
    fn receive(
        &self,
        session: &AgentSession,
        server: &Server,
        notification: &Notification<'_>,
        body: &Bytes,
    );

    /// Notifies the agent, a little later and once, if the lists it was shown have changed.
    fn notify_changed(&self, session: &Arc<AgentSession>);
}
