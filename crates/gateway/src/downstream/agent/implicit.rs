//! Functions of implicit agent sessions, which serve clients of protocol 2026-07-28.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use toolgate_admission::call_request::CallRequest;
use toolgate_admission::clearance::Closed;
use toolgate_admission::contained::Work;
use toolgate_mcp::{OwnedRequest, Refusal, method, write};
use toolgate_upstream::event_buffer::EventBuffer;

use super::{AgentSession, Attached};
use crate::downstream::call::Call;

/// The timeout of background messages, because a stop waits for them.
const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(5);

impl AgentSession {
    /// Whether it serves such clients.
    pub(crate) fn is_implicit(&self) -> bool {
        self.is_implicit
    }

    /// The number of a new stream, which is also a unique id.
    pub(crate) fn next_number(&self) -> u64 {
        self.stream_number()
    }

    /// Starts a request of toolgate itself.
    pub(crate) fn start_own(
        self: &Arc<Self>,
        request: &OwnedRequest,
        buffer: &Arc<EventBuffer>,
    ) -> Result<Work, Refusal> {
        self.start(CallRequest::read(&request.request())?, buffer)
    }

    /// A call whose work is `work`.
    pub(crate) fn call(&self, buffer: Arc<EventBuffer>, work: Work) -> Call {
        Call::new(buffer, work, &self.tasks, &self.timer)
    }

    /// Reads the stream of a call, which cannot be resumed.
    pub(crate) fn follow(self: &Arc<Self>, call: &Call) -> Attached {
        self.attach(call.buffer().read(Some(0)))
    }

    /// Reads the general stream from now on, without earlier messages.
    pub(crate) fn listen_from_now(self: &Arc<Self>) -> Attached {
        self.listen_to_servers();
        self.attach(self.general.read(Some(self.general.last())))
    }

    /// Cancels the request `id`, because its client is gone.
    pub(crate) fn abandon(&self, id: &str) {
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        self.running.cancel(id);
        for link in self.all_links() {
            if let Some(number) = link.withdraw(self.key, id) {
                let params = format!(r#"{{"requestId":{number},"reason":"the client is gone"}}"#);
                let body = write::notification(method::CANCELLED, Some(&params));
                self.tasks.spawn(timeout(BACKGROUND_TIMEOUT, async move {
                    link.forward_cleared(body, Closed::CANCELLED).await;
                }));
            }
        }
    }

    /// Runs work in the background; a stop waits for it.
    pub(crate) fn spawn_in_background(&self, work: Work) {
        if tokio::runtime::Handle::try_current().is_ok() {
            self.tasks.spawn(timeout(BACKGROUND_TIMEOUT, work));
        }
    }
}
