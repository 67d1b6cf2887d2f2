//! The running calls of an agent session to sessions, so that it can cancel them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// Running calls, by the agent's request id.
#[derive(Debug, Default)]
pub(crate) struct RunningCalls(Mutex<HashMap<Box<str>, CancellationToken>>);

/// A running call; dropped when it ends.
pub(crate) struct RunningCall {
    running: Arc<RunningCalls>,
    id: Box<str>,
    pub(crate) cancelled: CancellationToken,
}

impl RunningCalls {
    /// Adds a call.
    pub(crate) fn enter(self: &Arc<Self>, id: &str) -> RunningCall {
        let cancelled = CancellationToken::new();
        self.0.lock().insert(id.into(), cancelled.clone());
        RunningCall { running: Arc::clone(self), id: id.into(), cancelled }
    }

    /// Cancels a call.
    pub(crate) fn cancel(&self, id: &str) {
        if let Some(call) = self.0.lock().get(id) {
            call.cancel();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.running.0.lock().remove(&self.id);
    }
}
