//! What an agent session does only when it stands for clients of protocol 2026-07-28.

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

/// How long a server may take to hear that nobody waits for it any more: a stop waits for that.
const PARTING: Duration = Duration::from_secs(5);

impl AgentSession {
    /// Whether it stands for such clients.
    pub(crate) fn is_standing(&self) -> bool {
        self.is_standing
    }

    /// The number of a new stream, which is also good as an id: it is given out once.
    pub(crate) fn next_number(&self) -> u64 {
        self.stream_number()
    }

    /// Starts a request that toolgate keeps or has written itself.
    pub(crate) fn start_own(
        self: &Arc<Self>,
        request: &OwnedRequest,
        buffer: &Arc<EventBuffer>,
    ) -> Result<Work, Refusal> {
        self.start(CallRequest::read(&request.request())?, buffer)
    }

    /// A call whose work is `work`.
    pub(crate) fn call(&self, buffer: Arc<EventBuffer>, work: Work) -> Call {
        Call::new(buffer, work, &self.tasks, &self.pace)
    }

    /// Reads the stream of a call, which cannot be resumed.
    pub(crate) fn follow(self: &Arc<Self>, call: &Call) -> Attached {
        self.attach(call.buffer().read(Some(0)))
    }

    /// Reads the general stream from now on, without what nobody has read before.
    pub(crate) fn hear_from_now(self: &Arc<Self>) -> Attached {
        self.listen_to_servers();
        self.attach(self.general.read(Some(self.general.last())))
    }

    /// Nobody wants the answer to the request `id` any more; the server is told.
    pub(crate) fn abandon(&self, id: &str) {
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        self.running.take_back(id);
        for link in self.all_links() {
            if let Some(number) = link.withdraw(self.key, id) {
                let params = format!(r#"{{"requestId":{number},"reason":"the client is gone"}}"#);
                let body = write::notification(method::CANCELLED, Some(&params));
                self.tasks.spawn(timeout(PARTING, async move {
                    link.tell(body, Closed::CANCELLED).await;
                }));
            }
        }
    }

    /// Does something behind the scenes that a stop waits for.
    pub(crate) fn behind_the_scenes(&self, work: Work) {
        if tokio::runtime::Handle::try_current().is_ok() {
            self.tasks.spawn(timeout(PARTING, work));
        }
    }
}
