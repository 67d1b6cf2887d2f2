//! Task ids in a server's messages, as an agent sees them.
//!
//! Invariant: in a message only task ids change, and lists keep only the tasks of the grant.

use memchr::memmem;
use toolgate_admission::caller::Caller;
use toolgate_admission::task_book::{NotFollowed, TaskOwner, TaskUpdate};
use toolgate_admission::task_call::CreatedTask;
use toolgate_json::{Edit, items, members, peek, text};
use toolgate_mcp::method;

use super::creation::{CallResult, Creation, made};
use super::{RELATED, Role, shown_id};

/// An answer of a server that may refer to tasks.
pub(crate) struct TaskAnswer<'a> {
    pub(crate) session: &'a dyn Caller,
    pub(crate) server: &'a str,
    pub(crate) role: &'a Role,
    /// Whether agents share the server.
    pub(crate) shared: bool,
    /// Whether the result of the call must be recorded before the agent sees it.
    pub(crate) watched: bool,
    pub(crate) call: CallResult,
}

/// An answer as the agent sees it.
#[derive(Default)]
pub(crate) struct ShownResult {
    /// `None` if it is unchanged.
    pub(crate) result: Option<String>,
    /// The task that it creates; the caller fills in its times and its channel.
    pub(crate) made: Option<Box<CreatedTask>>,
}

/// An answer that is not shown.
#[derive(Default)]
pub(crate) struct NotShown {
    pub(crate) why: WhyNot,
    /// The task that the answer creates nevertheless: its call is in flight.
    pub(crate) made: Option<Box<CreatedTask>>,
}

/// Why an answer is not shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum WhyNot {
    /// It is about a task of another grant, or cannot be read.
    #[default]
    NotYours,
    /// It creates a task without exactly one id that is a string.
    NoId,
    /// The grant has too many open tasks to follow this one.
    TooMany,
}

impl TaskAnswer<'_> {
    /// The result as the agent is to see it.
    pub(crate) fn show(&self, result: &str) -> Result<ShownResult, NotShown> {
        match self.role {
            Role::List => {
                self.list(result).map(|list| ShownResult { result: Some(list), made: None })
            }
            Role::Call => self.created(result),
            Role::Task { own, .. } => {
                Ok(ShownResult { result: self.about(own, result)?, made: None })
            }
        }
    }

    /// What an answer about a task reports of its call.
    pub(crate) fn update(&self, answer: &str) -> Option<TaskUpdate> {
        let Role::Task { own, result } = self.role else { return None };
        TaskUpdate::of_answer(own, answer, *result)
    }

    fn mine(&self, own: &str) -> bool {
        let grant = self.session.grant();
        self.session.admission().tasks.owner(&grant.label, self.server, own) == TaskOwner::Own
    }

    /// The result of a call, and the task that it creates. A task that the agent cannot be shown
    /// keeps its call in flight all the same.
    fn created(&self, result: &str) -> Result<ShownResult, NotShown> {
        let named = match Creation::of(result, self.call) {
            None => {
                return Ok(ShownResult {
                    result: edited(result, self.related(result)),
                    made: None,
                });
            }
            Some(Creation { task, id }) => id.map(|(raw, own)| (raw, own, task)).ok_or(task),
        };
        let (raw, own, task) = named.map_err(|task| NotShown::unfollowed(WhyNot::NoId, task))?;
        let label = &self.session.grant().label;
        let (key, book) = (self.session.key(), &self.session.admission().tasks);
        let update = book.create(label, (self.server, &own), key, self.watched, self.shared);
        let update = update.map_err(|why| match why {
            NotFollowed::Taken => NotShown::unfollowed(WhyNot::NotYours, task),
            NotFollowed::Full => NotShown::unfollowed(WhyNot::TooMany, task),
        })?;
        let made = Some(Box::new(made(Some((own.clone(), update)), task)));
        let Some(shown) = shown_id(self.session, self.server, &own) else {
            return Err(NotShown { why: WhyNot::NotYours, made });
        };
        let ids = raw.into_iter().map(|raw| (raw, shown.clone()));
        Ok(ShownResult { result: edited(result, ids.chain(self.related(result))), made })
    }

    /// What is said of the task `own`; none if that is as it came.
    fn about(&self, own: &str, result: &str) -> Result<Option<String>, NotShown> {
        let parts = members(result, ["taskId", "status", "task", "result"]);
        let [flat, status, task, inner] = parts.map_err(|_| NotShown::default())?;
        let nested = task.map(|task| peek(task, &["taskId"]).ok()).unwrap_or_default().flatten();
        let flat = flat.filter(|_| status.is_some());
        let related = [Some(result), inner].into_iter().flatten();
        let related = related.filter_map(|holder| peek(holder, &RELATED).ok().flatten());
        let mut edits = Vec::new();
        for raw in flat.into_iter().chain(nested).chain(related) {
            let named = text(raw).ok_or_else(NotShown::default)?;
            if *named != *own && !self.mine(&named) {
                return Err(NotShown::default());
            }
            edits.push((
                raw,
                shown_id(self.session, self.server, &named).ok_or_else(NotShown::default)?,
            ));
        }
        Ok(edited(result, edits))
    }

    fn list(&self, result: &str) -> Result<String, NotShown> {
        let [list] = members(result, ["tasks"]).map_err(|_| NotShown::default())?;
        let list = list.ok_or_else(NotShown::default)?;
        let all = items(list).ok().flatten().ok_or_else(NotShown::default)?;
        let mut shown = Vec::new();
        for task in all {
            let raw = peek(task, &["taskId"]).map_err(|_| NotShown::default())?;
            let Some((raw, own)) = raw.and_then(|raw| Some((raw, text(raw)?))) else { continue };
            if self.mine(&own) {
                let id = shown_id(self.session, self.server, &own).ok_or_else(NotShown::default)?;
                shown.push(edited(task, [(raw, id)]).ok_or_else(NotShown::default)?);
            }
        }
        let shown = format!("[{}]", shown.join(","));
        edited(result, [(list, shown)]).ok_or_else(NotShown::default)
    }

    fn related<'r>(&self, holder: &'r str) -> Option<(&'r str, String)> {
        let raw = peek(holder, &RELATED).ok().flatten()?;
        let own = text(raw).filter(|own| self.mine(own))?;
        Some((raw, shown_id(self.session, self.server, &own)?))
    }
}

impl NotShown {
    /// The agent learns no id, so that only its time ends the task.
    fn unfollowed(why: WhyNot, task: &str) -> Self {
        Self { why, made: Some(Box::new(made(None, task))) }
    }
}

/// A message of a server that names a task, and is no answer.
pub(crate) struct TaskMessage<'a> {
    /// The id as it stands in the message.
    raw: &'a str,
    pub(crate) own: String,
    /// The reported state of the task.
    pub(crate) update: Option<TaskUpdate>,
}

impl<'a> TaskMessage<'a> {
    /// `None` if the message refers to no task.
    pub(crate) fn of(method: &str, params: Option<&'a str>) -> Option<Self> {
        let params = params?;
        let tells = matches!(method, method::TASKS_STATUS | method::TASKS_CHANGED);
        let raw = if tells { peek(params, &["taskId"]) } else { peek(params, &RELATED) };
        let raw = raw.ok().flatten()?;
        let own = text(raw)?.into_owned();
        Some(Self { raw, own, update: tells.then(|| TaskUpdate::of(params)) })
    }

    /// Whether the grant of `session` owns the task.
    pub(crate) fn is_of(&self, session: &dyn Caller, server: &str) -> bool {
        self.whose(session, server) == TaskOwner::Own
    }

    /// Whether only other grants own the task.
    pub(crate) fn is_of_others(&self, session: &dyn Caller, server: &str) -> bool {
        self.whose(session, server) == TaskOwner::Other
    }

    /// The raw id in the message, and the id that `session` knows.
    pub(crate) fn change(&self, session: &dyn Caller, server: &str) -> Option<(&'a str, String)> {
        Some((self.raw, shown_id(session, server, &self.own)?))
    }

    fn whose(&self, session: &dyn Caller, server: &str) -> TaskOwner {
        session.admission().tasks.owner(&session.grant().label, server, &self.own)
    }
}

/// Whether this may be about a task; most plainly is not.
pub(crate) fn may_be_about_task(json: &str) -> bool {
    memmem::find(json.as_bytes(), b"\"task").is_some()
}

/// The text with these parts replaced; none if there are none.
fn edited<'a>(json: &str, edits: impl IntoIterator<Item = (&'a str, String)>) -> Option<String> {
    let mut edits = edits.into_iter().peekable();
    edits.peek()?;
    let mut edit = Edit::new(json);
    for (raw, with) in edits {
        edit = edit.replace(raw, with).ok()?;
    }
    String::from_utf8(edit.finish().to_vec()).ok()
}
