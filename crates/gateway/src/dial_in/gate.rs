//! The gate of one call: checks immediately before the write whether it may still be written.

use std::fmt;

use parking_lot::Mutex;

use toolgate_admission::recheck::Recheck;
use toolgate_admission::refused::Refused;

/// The check that a call must pass before it is written to its session.
pub struct Gate {
    recheck: Recheck,
    refused: Mutex<Option<Refused>>,
}

impl Gate {
    pub(crate) fn new(recheck: Recheck) -> Self {
        Self { recheck, refused: Mutex::new(None) }
    }

    /// Whether the call may still be written. If not, nothing of it may be written.
    pub async fn opens(&self) -> bool {
        match self.recheck.check_fresh().await {
            Ok(()) => true,
            Err(refused) => {
                *self.refused.lock() = Some(refused);
                false
            }
        }
    }

    /// Why the check refused the call.
    pub(crate) fn refused(&self) -> Option<Refused> {
        self.refused.lock().clone()
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}
