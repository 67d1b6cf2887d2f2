//! Task ids in a server's messages, as an agent sees them.
//!
//! Invariant: in a message only task ids change, and lists keep only the tasks of the grant.

use memchr::memmem;
use toolgate_admission::caller::Caller;
use toolgate_admission::task_book::{Heard, Whose};
use toolgate_admission::task_call::Made;
use toolgate_json::{Edit, items, members, peek, text};
use toolgate_mcp::method;

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
}

/// An answer as the agent sees it.
#[derive(Default)]
pub(crate) struct ShownResult {
    /// `None` if it is unchanged.
    pub(crate) result: Option<String>,
    /// The task that it creates; the caller fills in its times and its channel.
    pub(crate) made: Option<Made>,
}

/// The answer is about a task of another grant, or cannot be parsed.
pub(crate) struct ForeignTask;

impl TaskAnswer<'_> {
    /// The result as the agent sees it.
    pub(crate) fn show(&self, result: &str) -> Result<ShownResult, ForeignTask> {
        match self.role {
            Role::List => {
                self.list(result).map(|list| ShownResult { result: Some(list), made: None })
            }
            // A result that cannot be parsed creates no task.
            Role::Call => self.created(result).map(Option::unwrap_or_default),
            Role::Task { own, .. } => {
                Ok(ShownResult { result: self.about(own, result)?, made: None })
            }
        }
    }

    /// What an answer about a task reports of its call.
    pub(crate) fn heard(&self, answer: &str) -> Option<Heard> {
        let Role::Task { own, result } = self.role else { return None };
        Heard::of_answer(own, answer, *result)
    }

    fn mine(&self, own: &str) -> bool {
        let grant = self.session.grant();
        self.session.admission().tasks.whose(&grant.label, self.server, own) == Whose::Mine
    }

    fn created(&self, result: &str) -> Result<Option<ShownResult>, ForeignTask> {
        let Ok([flat, status, task]) = members(result, ["taskId", "status", "task"]) else {
            return Ok(None);
        };
        let nested = task.and_then(|task| Some((peek(task, &["taskId"]).ok()??, task)));
        let flat = flat.filter(|_| status.is_some()).map(|id| (id, result));
        let mut edits = Vec::new();
        let mut made = None;
        for (raw, task) in nested.into_iter().chain(flat) {
            let Some(own) = text(raw) else { continue };
            let label = &self.session.grant().label;
            let (key, book) = (self.session.key(), &self.session.admission().tasks);
            let heard = book.create(label, (self.server, &own), key, self.watched, self.shared);
            let heard = heard.ok_or(ForeignTask)?;
            edits.push((raw, shown_id(self.session, self.server, &own).ok_or(ForeignTask)?));
            made.get_or_insert(Made {
                own: own.into_owned(),
                first: Heard::of(task),
                heard,
                gone: None,
                shortest: std::time::Duration::ZERO,
            });
        }
        edits.extend(self.related(result));
        Ok(Some(ShownResult { result: edited(result, edits), made }))
    }

    /// An answer about the task `own`; `None` if it is unchanged.
    fn about(&self, own: &str, result: &str) -> Result<Option<String>, ForeignTask> {
        let parts = members(result, ["taskId", "status", "task", "result"]);
        let [flat, status, task, inner] = parts.map_err(|_| ForeignTask)?;
        let nested = task.map(|task| peek(task, &["taskId"]).ok()).unwrap_or_default().flatten();
        let flat = flat.filter(|_| status.is_some());
        let related = [Some(result), inner].into_iter().flatten();
        let related = related.filter_map(|holder| peek(holder, &RELATED).ok().flatten());
        let mut edits = Vec::new();
        for raw in flat.into_iter().chain(nested).chain(related) {
            let named = text(raw).ok_or(ForeignTask)?;
            if *named != *own && !self.mine(&named) {
                return Err(ForeignTask);
            }
            edits.push((raw, shown_id(self.session, self.server, &named).ok_or(ForeignTask)?));
        }
        Ok(edited(result, edits))
    }

    fn list(&self, result: &str) -> Result<String, ForeignTask> {
        let [list] = members(result, ["tasks"]).map_err(|_| ForeignTask)?;
        let list = list.ok_or(ForeignTask)?;
        let all = items(list).ok().flatten().ok_or(ForeignTask)?;
        let mut shown = Vec::new();
        for task in all {
            let raw = peek(task, &["taskId"]).map_err(|_| ForeignTask)?;
            let Some((raw, own)) = raw.and_then(|raw| Some((raw, text(raw)?))) else { continue };
            if self.mine(&own) {
                let id = shown_id(self.session, self.server, &own).ok_or(ForeignTask)?;
                shown.push(edited(task, vec![(raw, id)]).ok_or(ForeignTask)?);
            }
        }
        let shown = format!("[{}]", shown.join(","));
        edited(result, vec![(list, shown)]).ok_or(ForeignTask)
    }

    fn related<'r>(&self, holder: &'r str) -> Option<(&'r str, String)> {
        let raw = peek(holder, &RELATED).ok().flatten()?;
        let own = text(raw).filter(|own| self.mine(own))?;
        Some((raw, shown_id(self.session, self.server, &own)?))
    }
}

/// A message of a server that refers to a task and is not an answer.
pub(crate) struct TaskMessage<'a> {
    /// The raw id in the message.
    raw: &'a str,
    pub(crate) own: String,
    /// The reported state of the task.
    pub(crate) heard: Option<Heard>,
}

impl<'a> TaskMessage<'a> {
    /// `None` if the message refers to no task.
    pub(crate) fn of(method: &str, params: Option<&'a str>) -> Option<Self> {
        let params = params?;
        let tells = matches!(method, method::TASKS_STATUS | method::TASKS_CHANGED);
        let raw = if tells { peek(params, &["taskId"]) } else { peek(params, &RELATED) };
        let raw = raw.ok().flatten()?;
        let own = text(raw)?.into_owned();
        Some(Self { raw, own, heard: tells.then(|| Heard::of(params)) })
    }

    /// Whether the grant of `session` owns the task.
    pub(crate) fn is_of(&self, session: &dyn Caller, server: &str) -> bool {
        self.whose(session, server) == Whose::Mine
    }

    /// Whether only other grants own the task.
    pub(crate) fn is_of_others(&self, session: &dyn Caller, server: &str) -> bool {
        self.whose(session, server) == Whose::Another
    }

    /// The raw id in the message, and the id that `session` knows.
    pub(crate) fn change(&self, session: &dyn Caller, server: &str) -> Option<(&'a str, String)> {
        Some((self.raw, shown_id(session, server, &self.own)?))
    }

    fn whose(&self, session: &dyn Caller, server: &str) -> Whose {
        session.admission().tasks.whose(&session.grant().label, server, &self.own)
    }
}

/// Whether this may refer to a task; most messages do not.
pub(crate) fn may_name(json: &str) -> bool {
    memmem::find(json.as_bytes(), b"\"taskId\"").is_some()
}

/// The text with these parts replaced; `None` if there are none.
fn edited(json: &str, edits: Vec<(&str, String)>) -> Option<String> {
    if edits.is_empty() {
        return None;
    }
    let mut edit = Edit::new(json);
    for (raw, with) in edits {
        edit = edit.replace(raw, with).ok()?;
    }
    String::from_utf8(edit.finish().to_vec()).ok()
}
