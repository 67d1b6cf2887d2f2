//! An update about a task, as a server sent it.

use tokio::sync::mpsc;
use toolgate_audit::{Effect, Outcome};
use toolgate_json::{members, peek, text};

/// The status of a task whose result is available.
const COMPLETED: &str = "completed";

/// An update about a task.
#[derive(Debug, Clone, Default)]
pub struct TaskUpdate {
    /// Its status.
    pub(crate) status: Option<String>,
    /// The result of its call, raw JSON.
    pub result: Option<String>,
    /// How long the server keeps it from now on.
    pub(crate) ttl_ms: Option<u64>,
    /// Dropped once this is recorded.
    pub recorded: Option<mpsc::Sender<()>>,
}

impl TaskUpdate {
    /// The update in a response about the task `own`.
    pub fn of_answer(own: &str, result: &str, wants_result: bool) -> Option<Self> {
        if wants_result {
            return Some(Self { result: Some(result.to_owned()), ..Self::default() });
        }
        let task = peek(result, &["task"]).ok().flatten().unwrap_or(result);
        let named = peek(task, &["taskId"]).ok().flatten().and_then(text);
        named.is_none_or(|named| *named == *own).then(|| Self::of(task))
    }

    /// How the task has ended; `None` if it has not. If the result of its call is `watched`, the
    /// call ends with that result and not with the status `completed`.
    pub(crate) fn ending(&self, watched: bool) -> Option<(Outcome, Effect)> {
        if let Some(result) = &self.result {
            let is_error = peek(result, &["isError"]).is_ok_and(|value| value == Some("true"));
            let outcome = if is_error { Outcome::ToolError } else { Outcome::Ok };
            return Some((outcome, Effect::Done));
        }
        match self.status.as_deref()? {
            COMPLETED if watched => None,
            COMPLETED => Some((Outcome::Ok, Effect::Done)),
            "failed" => Some((Outcome::ToolError, Effect::Done)),
            "cancelled" => Some((Outcome::Cancelled, Effect::Unknown)),
            _ => None,
        }
    }

    /// Whether the task has completed.
    pub(crate) fn is_completed(&self) -> bool {
        self.status.as_deref() == Some(COMPLETED)
    }

    /// The update in a description of a task.
    pub fn of(task: &str) -> Self {
        let [status, old, new, result] =
            members(task, ["status", "ttl", "ttlMs", "result"]).unwrap_or_default();
        Self {
            status: status.and_then(text).map(std::borrow::Cow::into_owned),
            result: result.filter(|raw| raw.starts_with('{')).map(str::to_owned),
            ttl_ms: new.or(old).and_then(|raw| raw.parse().ok()),
            recorded: None,
        }
    }
}
