//! Whether the result of a call creates a task, and under which id.
//!
//! Invariant: a result that may create a task is never taken for one that ends its call.
//!
//! Start at [`Creation::of`].

use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use toolgate_admission::task_book::TaskUpdate;
use toolgate_admission::task_call::CreatedTask;
use toolgate_json::{members, peek, text};

/// The `resultType` of an answer that creates a task.
const TASK: &str = "task";

/// What is known about the result of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallResult {
    /// The request was a call of a tool.
    pub(crate) is_tool: bool,
    /// The server declared the result to be a task.
    pub(crate) is_task: bool,
}

/// The result of a call that creates a task.
pub(super) struct Creation<'a> {
    /// What describes the task.
    pub(super) task: &'a str,
    /// Where its id stands, and the id; `None` unless there is exactly one that is a string.
    pub(super) id: Option<(Vec<&'a str>, String)>,
}

impl<'a> Creation<'a> {
    /// `None` if the result creates no task.
    pub(super) fn of(result: &'a str, CallResult { is_tool, is_task }: CallResult) -> Option<Self> {
        let keys = ["taskId", "status", "task", "content"];
        let Ok([flat, status, nested, content]) = members(result, keys) else {
            return (is_tool || is_task).then_some(Self { task: result, id: None });
        };
        let nested = nested.filter(|task| task.starts_with('{') || is_tool && content.is_none());
        let inner = nested.and_then(|task| members(task, ["taskId", "status"]).ok());
        let [inner, inner_status] = inner.unwrap_or_default();
        let flat = flat.filter(|_| status.is_some() || is_task || is_tool && content.is_none());
        let ids: Vec<&str> = inner.into_iter().chain(flat).collect();
        let mut own = ids.iter().map(|raw| text(raw).filter(|own| !own.is_empty()));
        if let Some(Some(first)) = own.next()
            && own.all(|other| other.as_ref() == Some(&first))
        {
            let id = Some((ids.clone(), first.into_owned()));
            return Some(Self { task: nested.unwrap_or(result), id });
        }
        // A tool's result has `content`; one without it that has a task is nothing else.
        let is_bare = content.is_none() && (nested.is_some() || flat.is_some());
        let is_whole = inner.is_some() && inner_status.is_some();
        let creates = is_task || is_tool && (is_bare || is_whole);
        creates.then_some(Self { task: nested.unwrap_or(result), id: None })
    }
}

impl CallResult {
    /// `result` is what the server answered, before anything was changed in it.
    pub(crate) fn of(result: &str, is_tool: bool) -> Self {
        let kind = peek(result, &["resultType"]).ok().flatten().and_then(text);
        Self { is_tool, is_task: kind.is_some_and(|kind| kind == TASK) }
    }

    /// The task that the result creates, if its agent session is gone and cannot be shown it.
    pub(crate) fn unseen(self, result: &str) -> Option<CreatedTask> {
        Creation::of(result, self).map(|creation| made(None, creation.task))
    }
}

/// A task as its server describes it.
pub(super) fn made(
    tracked: Option<(String, UnboundedReceiver<TaskUpdate>)>,
    task: &str,
) -> CreatedTask {
    CreatedTask { tracked, first: TaskUpdate::of(task), gone: None, shortest: Duration::ZERO }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_that_create_tasks() {
        // The result of a tool, and the id of its task; `None` if there is no usable one.
        let tasks = [
            (r#"{"task":{"taskId":"a","status":"working"}}"#, Some("a")),
            (r#"{"task":{"taskId":"a"}}"#, Some("a")),
            (r#"{"taskId":"a","status":"working","resultType":"task"}"#, Some("a")),
            (r#"{"taskId":"a","resultType":"task"}"#, Some("a")),
            (
                r#"{"taskId":"a","task":{"taskId":"a","status":"working"},"status":"working"}"#,
                Some("a"),
            ),
            (r#"{"content":[],"task":{"taskId":"a","status":"working"}}"#, Some("a")),
            (r#"{"task":{"taskId":7,"status":"working"}}"#, None),
            (r#"{"content":[],"task":{"taskId":7,"status":"working"}}"#, None),
            (r#"{"task":{"taskId":"","status":"working"}}"#, None),
            (r#"{"task":{"taskId":null}}"#, None),
            (r#"{"task":{"status":"working"}}"#, None),
            (r#"{"task":{}}"#, None),
            (r#"{"task":"a"}"#, None),
            (r#"{"taskId":7}"#, None),
            (r#"{"resultType":"task"}"#, None),
            (r#"{"resultType":"task","content":[]}"#, None),
            (r#"{"task":{"taskId":"a","status":"working"},"taskId":"b","status":"working"}"#, None),
        ];
        for (result, expected) in tasks {
            let found = Creation::of(result, CallResult::of(result, true)).unwrap();
            assert_eq!(found.id.map(|(_, own)| own).as_deref(), expected, "{result}");
        }
    }

    #[test]
    fn results_that_create_none() {
        for result in [
            r#"{"content":[]}"#,
            r#"{"content":[],"structuredContent":{"task":{"taskId":"a","status":"working"}}}"#,
            r#"{"content":[],"task":"a"}"#,
            r#"{"content":[],"task":{"name":"a"}}"#,
            r#"{"content":[],"taskId":7}"#,
            r#"{"content":[],"taskId":"a"}"#,
            "{}",
        ] {
            assert!(Creation::of(result, CallResult::of(result, true)).is_none(), "{result}");
        }
        // Other methods may use the words as they like.
        for result in [r#"{"task":"a"}"#, r#"{"task":{}}"#, r#"{"taskId":7}"#] {
            assert!(Creation::of(result, CallResult::of(result, false)).is_none(), "{result}");
        }
    }
}
