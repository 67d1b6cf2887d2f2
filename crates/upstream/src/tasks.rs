//! Tasks: calls that continue at their server after they were answered.
//!
//! An agent knows a task by a sealed id that names its server and its grant; the same task has the
//! same id on every endpoint. This covers the tasks of 2025-11-25, which can be listed, and those
//! of the extension of 2026-07-28. [`TaskBook`](toolgate_admission::task_book::TaskBook) remembers which
//! grant's calls created which tasks; the call itself stays open until its task ends
//! (`task_call.rs`).
//!
//! Invariant: only the grant whose call created a task can reach it, list it and receive its
//! notifications, even if agents share a server.
//!
//! Start at [`own_id`] and `tasks/show.rs`.

use serde_json::json;
use toolgate_json::{peek, quote, text};
use toolgate_mcp::{Refusal, code, method};

use toolgate_admission::call_request::{CallRequest, Subject};
use toolgate_admission::caller::Caller;
use toolgate_admission::sealed_token::{Seal, TASKS};
use toolgate_admission::task_book::TaskOwner;

mod creation;
mod show;

pub(crate) use creation::CallResult;
pub(crate) use show::{NotShown, TaskAnswer, TaskMessage, WhyNot, may_be_about_task};

/// Where a message names the task it belongs to.
const RELATED: [&str; 3] = ["_meta", "io.modelcontextprotocol/related-task", "taskId"];
/// The same id results each time; the cipher allows a fixed nonce for that.
const ALWAYS: [u8; 10] = [0; 10];

/// How the answer to a request may refer to tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    /// It may create a task.
    Call,
    /// It is about this task.
    Task {
        /// The server's own id.
        own: Box<str>,
        /// Whether the request asks for the result of the task's call.
        result: bool,
    },
    /// It lists tasks.
    List,
}

impl Role {
    /// `task` is the server's own id of the task that the request is about.
    pub(crate) fn of(method: &str, task: Option<&str>) -> Self {
        match (method, task) {
            (method::TASKS_LIST, _) => Self::List,
            (_, Some(task)) => {
                Self::Task { own: task.into(), result: method == method::TASKS_RESULT }
            }
            _ => Self::Call,
        }
    }
}

/// A part of a request that names a task, and the server's own id of it.
pub type Part<'a> = (&'a str, String);

/// The task that a `tasks/*` request is about: its server, the part of the request, its own id.
pub fn subject<'a>(
    session: &dyn Caller,
    request: &CallRequest<'a>,
) -> Result<(String, Part<'a>), Refusal> {
    let part = match &request.subject {
        Subject::Task(Some(part)) if part.raw.starts_with('"') => part,
        _ => return Err(refusal("`params.taskId` must be a string")),
    };
    let found = part.text.as_deref().and_then(|shown| own_id(session, shown));
    let (server, own) = found.ok_or_else(no_such_task)?;
    Ok((server, (part.raw, own)))
}

/// The task of `server` that a request belongs to; `part` is where it names the task. One that this grant does not know is
/// refused: the server could take the request for a part of another grant's task.
pub fn related<'a>(
    session: &dyn Caller,
    server: &str,
    part: Option<&'a str>,
) -> Result<Option<Part<'a>>, Refusal> {
    let Some(part) = part else { return Ok(None) };
    let found = text(part).and_then(|shown| own_id(session, &shown));
    let own = found.filter(|(of, _)| of == server).ok_or_else(no_such_task)?.1;
    Ok(Some((part, own)))
}

/// The same for an agent's answer or notification. These may also refer to a task of the agent
/// itself, whose id passes unchanged.
pub fn related_if_known<'a>(session: &dyn Caller, server: &str, json: &'a str) -> Option<Part<'a>> {
    related(session, server, peek(json, &RELATED).ok()?).ok().flatten()
}

/// The answer for a task that the grant does not own.
pub fn no_such_task() -> Refusal {
    refusal("no such task")
}

fn refusal(message: &str) -> Refusal {
    Refusal { code: code::INVALID_PARAMS, message: message.to_owned(), id: None }
}

/// The server of a task and its id there; `None` if the id was not issued to this grant.
pub fn own_id(session: &dyn Caller, shown: &str) -> Option<(String, String)> {
    let opened = Seal::new(&session.admission().secret(), TASKS)?.open(shown)?;
    let [grant, server, own] = serde_json::from_str::<[String; 3]>(&opened).ok()?;
    let label = &session.grant().label;
    if **label != *grant {
        return None;
    }
    let is_own = session.admission().tasks.remember(label, &server, &own, session.key());
    is_own.then_some((server, own))
}

/// The id under which this grant knows the task with the own id `raw`, both raw JSON; `None` if the
/// task is not this grant's.
pub(crate) fn shown_if_own(session: &dyn Caller, server: &str, raw: &str) -> Option<String> {
    let own = text(raw)?;
    let book = &session.admission().tasks;
    let is_own = book.owner(&session.grant().label, server, &own) == TaskOwner::Own;
    is_own.then(|| shown_id(session, server, &own)).flatten()
}

/// The id under which this grant knows a task, as raw JSON.
fn shown_id(session: &dyn Caller, server: &str, own: &str) -> Option<String> {
    let what = json!([&*session.grant().label, server, own]).to_string();
    let shown = Seal::new(&session.admission().secret(), TASKS)?.close(&what, ALWAYS)?;
    Some(quote(&shown))
}
