//! The target of a call: the session it goes to, and what that session receives.

use std::sync::Arc;
use std::time::Duration;

use crate::arguments::{invalid, not_an_identifier};
use crate::failure::{Effect, SessionFailure};
use crate::keys::{ambiguous, shown};
use crate::tool::Tool;

/// A call that can be let in, and where it goes.
#[derive(Debug, Clone)]
pub struct CallTarget {
    /// The session.
    pub session_id: Arc<str>,
    /// Its kind.
    pub kind: String,
    /// Its base.
    pub infobase_name: String,
    /// The machine it runs on.
    pub host_id: String,
    /// The name that was called.
    pub published: String,
    /// The tool; its own name is the client's.
    pub tool: Arc<Tool>,
    /// What the session gets.
    pub arguments: String,
    /// How long the call may take; `None` is for ever.
    pub allowed: Option<Duration>,
    /// Whether the agent has said which session it wants.
    pub selected: bool,
    /// Whether its keys must be 1C identifiers that 1C can tell apart.
    pub identifier_keys: bool,
    /// Which life of the session is meant.
    pub(crate) life: u64,
}

impl CallTarget {
    /// Whether the session can read the keys of the arguments as they are meant. `asked` are those
    /// of the agent, with the gate's own keys.
    pub fn check_keys(&self, asked: &str) -> Result<(), SessionFailure> {
        if !self.identifier_keys {
            return Ok(());
        }
        if let Some(key) = not_an_identifier(&self.arguments) {
            let what = format!(
                "the key `{}` is no 1C identifier (a letter or `_`, then letters, digits, `_`), and the session would lose the call",
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
