//! How a request ended, for the audit.

use std::sync::Arc;

use toolgate_admission::refused::Refused;
use toolgate_admission::task_call::Made;
use toolgate_audit::{Effect, Outcome};
use toolgate_json::peek;
use toolgate_mcp::Payload;

use super::input_required::InputRequired;
use crate::failure::{self, Failure};
use crate::held_answer::HeldAnswer;

/// How a request ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) effect: Effect,
    /// The `error_code` in the agent's answer.
    pub(crate) code: Option<&'static str>,
    /// The answer, if it must be recorded before the agent may see it.
    pub(crate) held: Option<HeldAnswer>,
    /// It has not ended: the server requires input first.
    pub(crate) asks: Option<Box<InputRequired>>,
    /// Why it was not written, for the row.
    pub(crate) message: Option<Arc<str>>,
    /// A part of it was written before, so it stays counted whatever its effect.
    pub(crate) stays_counted: bool,
    /// The task that continues after it.
    pub(crate) task: Option<Box<Made>>,
}

impl Ended {
    /// The server answered. `said` is whether the result is a tool error, if known.
    pub(crate) fn answered(payload: Payload<'_>, said: Option<bool>) -> Self {
        let (outcome, effect) = match payload {
            Payload::Result(result) if said.unwrap_or_else(|| is_error(result)) => {
                (Outcome::ToolError, Effect::Done)
            }
            Payload::Result(_) => (Outcome::Ok, Effect::Done),
            Payload::Error(_) => (Outcome::ProtocolError, Effect::Unknown),
        };
        Self::new(outcome, effect)
    }

    /// The server did not answer.
    pub(crate) fn failed(failure: &Failure) -> Self {
        let effect = match failure.effect() {
            failure::Effect::NotStarted => Effect::NotStarted,
            failure::Effect::Unknown => Effect::Unknown,
        };
        let outcome = match failure {
            Failure::Timeout { .. } => Outcome::Timeout,
            _ if effect == Effect::NotStarted => Outcome::Unavailable,
            _ => Outcome::Unknown,
        };
        Self { code: Some(failure.error_code()), ..Self::new(outcome, effect) }
    }

    /// The agent cancelled it.
    pub(crate) fn cancelled(effect: Effect) -> Self {
        Self::new(Outcome::Cancelled, effect)
    }

    /// It, or the rest of it, was not written because it is no longer allowed.
    pub(crate) fn refused(refused: &Refused, was_written: bool) -> Self {
        Self {
            code: Some(refused.code()),
            message: Some(refused.said().into()),
            stays_counted: was_written,
            ..Self::new(Outcome::Unavailable, Effect::NotStarted)
        }
    }

    /// The server requires input first.
    pub(crate) fn input_required(asks: InputRequired) -> Self {
        let asks = Some(Box::new(asks));
        Self { asks, ..Self::new(Outcome::InputRequired, Effect::Unknown) }
    }

    fn new(outcome: Outcome, effect: Effect) -> Self {
        Self {
            outcome,
            effect,
            code: None,
            held: None,
            asks: None,
            message: None,
            stays_counted: false,
            task: None,
        }
    }
}

/// Whether a result reports that the tool failed.
fn is_error(result: &str) -> bool {
    peek(result, &["isError"]).is_ok_and(|value| value == Some("true"))
}
