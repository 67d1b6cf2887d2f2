//! How a call ended: for the audit, and for an agent that must wait for its record.

use std::fmt;
use std::sync::Arc;

use toolgate_audit::{Effect, Outcome};
use toolgate_json::peek;
use toolgate_mcp::Payload;

use crate::refused::Refused;
use crate::task_book::CreatedTask;

/// How a call ended.
#[derive(Debug)]
pub struct Ended {
    /// The outcome.
    pub outcome: Outcome,
    /// Whether the tool may have run.
    pub effect: Effect,
    /// The `error_code` sent to the agent.
    pub code: Option<&'static str>,
    /// Why it was not sent, for the row.
    pub message: Option<Arc<str>>,
    /// An earlier round was sent, so the call stays counted whatever its effect.
    pub stays_counted: bool,
    /// The task that continues after it.
    pub task: Option<Box<CreatedTask>>,
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
    /// An end with this outcome and effect.
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

    /// The call was answered. `failed` is the value of `isError`, if it is known.
    pub fn answered(payload: Payload<'_>, failed: Option<bool>) -> Self {
        let (outcome, effect) = match payload {
            Payload::Result(result) if failed.unwrap_or_else(|| is_error(result)) => {
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

    /// The call, or its next round, is no longer allowed and was not sent.
    pub fn refused(refused: &Refused, was_sent: bool) -> Self {
        Self {
            code: Some(refused.code()),
            message: Some(refused.row_message().into()),
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

/// Whether a result has `isError: true`.
fn is_error(result: &str) -> bool {
    peek(result, &["isError"]).is_ok_and(|value| value == Some("true"))
}
