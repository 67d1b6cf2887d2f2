//! The target of a call: its session, and what that session receives.

use std::sync::Arc;
use std::time::Duration;

use crate::arguments::{invalid, not_an_identifier};
use crate::failure::{Effect, SessionFailure};
use crate::keys::{ambiguous, shown};
use crate::tool::Tool;

/// The target of a call that may be started.
#[derive(Debug, Clone)]
pub struct CallTarget {
    /// The session.
    pub session_id: Arc<str>,
    /// Its kind.
    pub kind: String,
    /// Its infobase.
    pub infobase_name: String,
    /// The machine it runs on.
    pub host_id: String,
    /// The name that was called.
    pub published: String,
    /// The tool; its name is the original one.
    pub tool: Arc<Tool>,
    /// What the session receives.
    pub arguments: String,
    /// How long the call may take; `None` for no limit.
    pub allowed: Option<Duration>,
    /// Whether the agent selected the session.
    pub selected: bool,
    /// Whether the keys must be 1C identifiers that 1C can distinguish.
    pub identifier_keys: bool,
    /// Identifies the session among those with the same uid.
    pub(crate) life: u64,
}

impl CallTarget {
    /// Checks that the session will read the argument keys as intended. `asked` are the arguments
    /// of the agent, including reserved keys.
    pub fn check_keys(&self, asked: &str) -> Result<(), SessionFailure> {
        if !self.identifier_keys {
            return Ok(());
        }
        if let Some(key) = not_an_identifier(&self.arguments) {
            let what = format!(
                "the key `{}` is not a 1C identifier (a letter or `_`, then letters, digits, `_`); the session would drop the call",
                shown(&key)
            );
            return Err(invalid(what));
        }
        ambiguous(asked).map_or(Ok(()), |what| Err(invalid(what)))
    }

    pub(crate) fn gone(&self) -> SessionFailure {
        SessionFailure::SessionGone {
            session_id: Arc::clone(&self.session_id),
            effect: Effect::NotStarted,
        }
    }
}
