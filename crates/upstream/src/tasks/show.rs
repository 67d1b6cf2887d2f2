//! What a server says of tasks, as an agent is to see it.
//!
//! Invariant: of a message only the ids of tasks change, and lists keep only the tasks of the grant.

use memchr::memmem;
use toolgate_admission::caller::Caller;
use toolgate_admission::task_book::{Heard, Whose};
use toolgate_admission::task_call::Made;
use toolgate_json::{Edit, items, members, peek, text};
use toolgate_mcp::method;

use super::{RELATED, Role, shown_id};

/// An answer of a server in which tasks are looked for.
pub(crate) struct Answer<'a> {
    pub(crate) session: &'a dyn Caller,
    pub(crate) server: &'a str,
    pub(crate) role: &'a Role,
    /// Whether agents share the server.
    pub(crate) shared: bool,
    /// Whether the result of the call must be recorded before the agent sees it.
    pub(crate) watched: bool,
}

/// What of an answer the agent is to see.
#[derive(Default)]
pub(crate) struct Shown {
    /// None if that is as it came.
    pub(crate) result: Option<String>,
    /// The task that it creates; its time and whereabouts are for the caller to fill in.
    pub(crate) made: Option<Made>,
}

/// Why an answer is not shown: it is about a task of somebody else, or says so in a way that
/// cannot be read.
pub(crate) struct NotYours;

impl Answer<'_> {
    /// The result as the agent is to see it.
    pub(crate) fn show(&self, result: &str) -> Result<Shown, NotYours> {
        match self.role {
            Role::List => self.list(result).map(|list| Shown { result: Some(list), made: None }),
            // What cannot be read is no task that anybody could ask for.
            Role::Call => self.created(result).map(Option::unwrap_or_default),
            Role::Task { own, .. } => Ok(Shown { result: self.about(own, result)?, made: None }),
        }
    }

    /// What an answer about a task tells of its call.
    pub(crate) fn heard(&self, answer: &str) -> Option<Heard> {
        let Role::Task { own, result } = self.role else { return None };
        Heard::of_answer(own, answer, *result)
    }

    fn mine(&self, own: &str) -> bool {
        let grant = self.session.grant();
        self.session.admission().tasks.whose(&grant.label, self.server, own) == Whose::Mine
    }

    fn created(&self, result: &str) -> Result<Option<Shown>, NotYours> {
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
            let heard = heard.ok_or(NotYours)?;
            edits.push((raw, shown_id(self.session, self.server, &own).ok_or(NotYours)?));
            made.get_or_insert(Made {
                own: own.into_owned(),
                first: Heard::of(task),
                heard,
                gone: None,
                shortest: std::time::Duration::ZERO,
            });
        }
        edits.extend(self.related(result));
        Ok(Some(Shown { result: edited(result, edits), made }))
    }

    /// What is said of the task `own`; none if that is as it came.
    fn about(&self, own: &str, result: &str) -> Result<Option<String>, NotYours> {
        let parts = members(result, ["taskId", "status", "task", "result"]);
        let [flat, status, task, inner] = parts.map_err(|_| NotYours)?;
        let nested = task.map(|task| peek(task, &["taskId"]).ok()).unwrap_or_default().flatten();
        let flat = flat.filter(|_| status.is_some());
        let related = [Some(result), inner].into_iter().flatten();
        let related = related.filter_map(|holder| peek(holder, &RELATED).ok().flatten());
        let mut edits = Vec::new();
        for raw in flat.into_iter().chain(nested).chain(related) {
            let named = text(raw).ok_or(NotYours)?;
            if *named != *own && !self.mine(&named) {
                return Err(NotYours);
            }
            edits.push((raw, shown_id(self.session, self.server, &named).ok_or(NotYours)?));
        }
        Ok(edited(result, edits))
    }

    fn list(&self, result: &str) -> Result<String, NotYours> {
        let [list] = members(result, ["tasks"]).map_err(|_| NotYours)?;
        let list = list.ok_or(NotYours)?;
        let all = items(list).ok().flatten().ok_or(NotYours)?;
        let mut shown = Vec::new();
        for task in all {
            let raw = peek(task, &["taskId"]).map_err(|_| NotYours)?;
            let Some((raw, own)) = raw.and_then(|raw| Some((raw, text(raw)?))) else { continue };
            if self.mine(&own) {
                let id = shown_id(self.session, self.server, &own).ok_or(NotYours)?;
                shown.push(edited(task, vec![(raw, id)]).ok_or(NotYours)?);
            }
        }
        let shown = format!("[{}]", shown.join(","));
        edited(result, vec![(list, shown)]).ok_or(NotYours)
    }

    fn related<'r>(&self, holder: &'r str) -> Option<(&'r str, String)> {
        let raw = peek(holder, &RELATED).ok().flatten()?;
        let own = text(raw).filter(|own| self.mine(own))?;
        Some((raw, shown_id(self.session, self.server, &own)?))
    }
}

/// A message of a server that names a task, and is no answer.
pub(crate) struct Named<'a> {
    /// The id as it stands in the message.
    raw: &'a str,
    pub(crate) own: String,
    /// What it tells of the task.
    pub(crate) heard: Option<Heard>,
}

impl<'a> Named<'a> {
    /// None if the message names no task.
    pub(crate) fn of(method: &str, params: Option<&'a str>) -> Option<Self> {
        let params = params?;
        let tells = matches!(method, method::TASKS_STATUS | method::TASKS_CHANGED);
        let raw = if tells { peek(params, &["taskId"]) } else { peek(params, &RELATED) };
        let raw = raw.ok().flatten()?;
        let own = text(raw)?.into_owned();
        Some(Self { raw, own, heard: tells.then(|| Heard::of(params)) })
    }

    /// Whose the task is, as seen by the grant of `session`.
    pub(crate) fn is_of(&self, session: &dyn Caller, server: &str) -> bool {
        self.whose(session, server) == Whose::Mine
    }

    /// Whether the task belongs to other grants alone.
    pub(crate) fn is_of_others(&self, session: &dyn Caller, server: &str) -> bool {
        self.whose(session, server) == Whose::Another
    }

    /// The id as it stands in the message, and as `session` knows it.
    pub(crate) fn change(&self, session: &dyn Caller, server: &str) -> Option<(&'a str, String)> {
        Some((self.raw, shown_id(session, server, &self.own)?))
    }

    fn whose(&self, session: &dyn Caller, server: &str) -> Whose {
        session.admission().tasks.whose(&session.grant().label, server, &self.own)
    }
}

/// Whether this may name a task; most plainly does not.
pub(crate) fn may_name(json: &str) -> bool {
    memmem::find(json.as_bytes(), b"\"taskId\"").is_some()
}

/// The text with these parts replaced; none if there are none.
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
