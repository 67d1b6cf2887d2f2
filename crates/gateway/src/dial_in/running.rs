//! The calls to sessions that an agent session has under way, so that it can take them back.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// Calls under way, by the agent's id of the request.
#[derive(Debug, Default)]
pub(crate) struct Running(Mutex<HashMap<Box<str>, CancellationToken>>);

/// One of them, until it is dropped.
pub(crate) struct Entered {
    running: Arc<Running>,
    id: Box<str>,
    pub(crate) taken_back: CancellationToken,
}

impl Running {
    /// A call begins.
    pub(crate) fn enter(self: &Arc<Self>, id: &str) -> Entered {
        let taken_back = CancellationToken::new();
        self.0.lock().insert(id.into(), taken_back.clone());
        Entered { running: Arc::clone(self), id: id.into(), taken_back }
    }

    /// The agent does not want it any more.
    pub(crate) fn take_back(&self, id: &str) {
        if let Some(call) = self.0.lock().get(id) {
            call.cancel();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.running.0.lock().remove(&self.id);
    }
}
