//! How a call ended: for the record, and for the agent where the record comes first.

use std::fmt;
use std::sync::Arc;

use toolgate_audit::{Effect, Outcome};
use toolgate_json::peek;
use toolgate_mcp::Payload;

use crate::refused::Refused;
use crate::task_call::Made;

/// How a call ended.
#[derive(Debug)]
pub struct Ended {
    /// What became of it.
    pub outcome: Outcome,
    /// Whether the tool ran.
    pub effect: Effect,
    /// The `error_code` that the agent was given.
    pub code: Option<&'static str>,
    /// Why it was not sent after all, for the row.
    pub message: Option<Arc<str>>,
    /// A part of it was sent before, so that it stays counted whatever its effect.
    pub stays_counted: bool,
    /// The task that continues after it.
    pub task: Option<Box<Made>>,
    /// The answer, if the outcome must be recorded before the agent may have it.
    pub withheld: Option<Withheld>,
}

/// An answer that the agent receives only after its outcome is recorded.
pub struct Withheld {
    /// The raw result.
    pub result: String,
    answer: Box<dyn FnOnce() + Send>,
}

impl Ended {
    /// It ended like this.
    pub fn new(outcome: Outcome, effect: Effect) -> Self {
        Self {
            outcome,
            effect,
            code: None,
            message: None,
            stays_counted: false,
            task: None,
            withheld: None,
        }
    }

    /// It was answered. `said` is whether the result says that the tool failed, if that is known.
    pub fn answered(payload: Payload<'_>, said: Option<bool>) -> Self {
        let (outcome, effect) = match payload {
            Payload::Result(result) if said.unwrap_or_else(|| is_error(result)) => {
                (Outcome::ToolError, Effect::Done)
            }
            Payload::Result(_) => (Outcome::Ok, Effect::Done),
            Payload::Error(_) => (Outcome::ProtocolError, Effect::Unknown),
        };
        Self::new(outcome, effect)
    }

    /// The agent cancelled it.
    pub fn cancelled(effect: Effect) -> Self {
        Self::new(Outcome::Cancelled, effect)
    }

    /// It, or the rest of it, was not sent after all: it is not allowed any more.
    pub fn refused(refused: &Refused, was_sent: bool) -> Self {
        Self {
            code: Some(refused.code()),
            message: Some(refused.said().into()),
            stays_counted: was_sent,
            ..Self::new(Outcome::Unavailable, Effect::NotStarted)
        }
    }
}

impl Withheld {
    /// Withholds the answer with this raw result; `answer` sends it.
    pub fn new(result: String, answer: impl FnOnce() + Send + 'static) -> Self {
        Self { result, answer: Box::new(answer) }
    }

    /// Sends the answer.
    pub(crate) fn release(self) {
        (self.answer)();
    }
}

impl fmt::Debug for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Withheld").finish_non_exhaustive()
    }
}

/// Whether a tool says that it failed.
fn is_error(result: &str) -> bool {
    peek(result, &["isError"]).is_ok_and(|value| value == Some("true"))
}
