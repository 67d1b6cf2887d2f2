//! Results and errors of a server as an agent sees them.
//!
//! Invariant: an agent that speaks the protocol of the server receives the server's own bytes,
//! except for hidden entries and the names of `/mcp`.

use std::borrow::Cow;

use memchr::memmem;
use toolgate_admission::answer_kind::AnswerKind;
use toolgate_admission::list_kind::Kind;
use toolgate_admission::task_call::CreatedTask;
use toolgate_json::{Edit, entries, peek, text};
use toolgate_mcp::code;
use toolgate_mcp::sessionless::key;

use super::Link;
use super::waiting::{AgentWaiter, Bridge, ListFilter};
use crate::cursors;
use crate::label;
use crate::lists::{Unreadable, without_hidden};
use crate::shown_uris::{may_show_uris, show_uris};
use crate::tasks::{CallResult, NotShown, Role, TaskAnswer, WhyNot, may_be_about_task};

/// Members of a result that sessionful protocols do not have.
const SESSIONLESS_MEMBERS: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

impl Link {
    /// The result as the agent is to see it, before its tasks are renamed; `None` if it passes
    /// unchanged. A list that the filter cannot read is rejected.
    pub(super) fn result_for_agent(
        &self,
        waiting: &AgentWaiter,
        result: &str,
    ) -> Result<Option<String>, Unreadable> {
        let older = waiting.bridge == Some(Bridge::Translate);
        let mut shown = None;
        match waiting.reply.expects() {
            AnswerKind::Tools if !older && self.is_last_list(waiting, result) => {}
            AnswerKind::Tools => shown = self.tools_for_agent(waiting, result, older)?,
            AnswerKind::Prompts => self.server.listed_names.learn(Kind::Prompts, result),
            _ => {}
        }
        if older {
            let now = shown.as_deref().unwrap_or(result);
            shown = for_sessionful(now).or(shown);
        }
        if let Some(ListFilter { kind, grant, now }) = &waiting.hides {
            let list = shown.as_deref().unwrap_or(result);
            let hidden = |own: &str| self.server.is_hidden_from(grant, *kind, own, *now);
            shown = without_hidden(*kind, list, hidden)?.or(shown);
            let list = shown.as_deref().unwrap_or(result);
            shown = for_one_grant(list).or(shown);
        }
        let now = shown.as_deref().unwrap_or(result);
        shown = self.with_shown_cursor(waiting, now)?.or(shown);
        if waiting.reply.expects() == AnswerKind::ToolResult
            || matches!(waiting.role, Role::Task { .. })
        {
            let now = shown.as_deref().unwrap_or(result);
            shown = self.server.settings.results.apply(now).or(shown);
        }
        if waiting.mapped {
            let now = shown.as_deref().unwrap_or(result);
            let mapped = may_show_uris(now).then(|| show_uris(now, &self.server.naming));
            shown = mapped.flatten().or(shown);
            let now = shown.as_deref().unwrap_or(result);
            shown = self.task_result(waiting, now).or(shown);
            let now = shown.as_deref().unwrap_or(result);
            shown = label::result(now, self.server.name()).or(shown);
        }
        Ok(shown)
    }

    /// A list with the cursor of its next page as the agent knows it. Pages that are merged on `/mcp`
    /// keep the server's own.
    fn with_shown_cursor(
        &self,
        waiting: &AgentWaiter,
        list: &str,
    ) -> Result<Option<String>, Unreadable> {
        let Some(method) = waiting.list_method().filter(|_| !waiting.mapped) else {
            return Ok(None);
        };
        let Some(session) = self.agent_by_key(waiting.session) else { return Ok(None) };
        let shown = cursors::shown(&session, self.server.name(), method, list)?;
        if shown.is_some() {
            self.server.note_pages();
        }
        // A list with such a cursor is for one grant.
        Ok(shown.map(|list| for_one_grant(&list).unwrap_or(list)))
    }

    /// A page of tools as the agent may see it; `None` if it passes unchanged.
    fn tools_for_agent(
        &self,
        waiting: &AgentWaiter,
        result: &str,
        older: bool,
    ) -> Result<Option<String>, Unreadable> {
        let broken = self.server.learn_annotations(result);
        let mut shown = None;
        if older && !broken.is_empty() {
            self.server.listed_names.learn(Kind::Tools, result);
            shown = without_hidden(Kind::Tools, result, |own| broken.contains(own))?;
        }
        let list = shown.as_deref().unwrap_or(result);
        Ok(self.without_quarantined(waiting, list)?.or(shown))
    }

    /// An answer about a task, with the URIs in the result of its call as shown.
    fn task_result(&self, waiting: &AgentWaiter, raw: &str) -> Option<String> {
        matches!(waiting.role, Role::Task { .. }).then_some(())?;
        let result = peek(raw, &["result"]).ok()??;
        let shown = show_uris(result, &self.server.naming)?;
        let edit = Edit::new(raw).replace(result, shown).ok()?;
        String::from_utf8(edit.finish().to_vec()).ok()
    }

    /// The result with the ids of tasks as the agent knows them, and the task that it creates.
    /// `original` is what the server answered.
    pub(super) fn tasks_for_agent(
        &self,
        waiting: &AgentWaiter,
        result: &str,
        original: &str,
    ) -> Result<(Option<String>, Option<Box<CreatedTask>>), Withholding> {
        if waiting.role == Role::Call && !may_be_about_task(original) {
            return Ok((None, None));
        }
        let call = CallResult::of(original, waiting.reply.expects() == AnswerKind::ToolResult);
        let Some(session) = self.agent_by_key(waiting.session) else {
            // Its agent session has ended; what the call started has not.
            return match waiting.role {
                Role::Call => {
                    let made = call.unseen(result).map(|made| self.placed(made, waiting));
                    Ok((None, made.map(Box::new)))
                }
                Role::List | Role::Task { .. } => Err(Withholding::from(NotShown::default())),
            };
        };
        let answer = TaskAnswer {
            session: &session,
            server: self.server.name(),
            role: &waiting.role,
            // An HTTP server of protocol 2026-07-28 has no sessions: one number space for all.
            shared: self.is_shared() || self.has_exchanges(),
            watched: waiting.held,
            call,
        };
        let shown = answer.show(result).map_err(|not_shown| {
            let made = not_shown.made.map(|made| Box::new(self.placed(*made, waiting)));
            Withholding { why: Why::Task(not_shown.why), made }
        })?;
        let made = shown.made.map(|made| {
            if let Some((own, _)) = &made.tracked {
                self.deliver_early(own);
            }
            Box::new(self.placed(*made, waiting))
        });
        if !waiting.held
            && let Role::Task { own, .. } = &waiting.role
            && let Some(update) = answer.update(result)
        {
            let who = (&*session.grant().label, session.key());
            session.admission().task_updated(who, self.server.name(), own, &update);
        }
        Ok((shown.result, made))
    }

    /// The task with where it runs and how long it keeps its call in flight at least.
    fn placed(&self, made: CreatedTask, waiting: &AgentWaiter) -> CreatedTask {
        let up = self.up.load_full().filter(|up| Some(up.epoch) == waiting.epoch);
        // A process takes its tasks with it; an HTTP server may keep them.
        let gone = up.and_then(|up| up.channel.ends_server().then(|| up.gone.clone()));
        CreatedTask { gone, shortest: self.server.timeout(None), ..made }
    }
}

/// An answer that is not shown.
pub(super) struct Withholding {
    why: Why,
    /// The task that the answer creates nevertheless.
    pub(super) made: Option<Box<CreatedTask>>,
}

enum Why {
    /// It is a list, and nothing can be hidden in it because it cannot be read.
    List,
    Task(WhyNot),
}

impl From<Unreadable> for Withholding {
    fn from(_: Unreadable) -> Self {
        Self { why: Why::List, made: None }
    }
}

impl From<NotShown> for Withholding {
    fn from(not_shown: NotShown) -> Self {
        Self { why: Why::Task(not_shown.why), made: None }
    }
}

impl Withholding {
    /// What the agent is told.
    pub(super) fn why(&self, server: &str) -> String {
        match self.why {
            Why::List => format!("the list of the server `{server}` cannot be read"),
            Why::Task(WhyNot::NotYours) => {
                format!("the server `{server}` answered about another task")
            }
            Why::Task(WhyNot::NoId) => format!(
                "the server `{server}` created a task without an id that is a string, so the task \
                 cannot be reached. The call was sent and stays in flight until the task's time is \
                 up; do not repeat it, tell the operator"
            ),
            Why::Task(WhyNot::TooMany) => format!(
                "your grant has too many tasks that have not ended, so the task that the server \
                 `{server}` created cannot be followed. The call was sent and stays in flight until \
                 the task's time is up; cancel tasks that you do not need (`tasks/cancel`)"
            ),
        }
    }
}

impl AgentWaiter {
    /// The error with the code of the agent's protocol.
    pub(super) fn error_for_agent<'e>(&self, error: &'e str) -> Cow<'e, str> {
        if self.bridge != Some(Bridge::Translate) || self.reply.expects() != AnswerKind::Resource {
            return Cow::Borrowed(error);
        }
        let raw = peek(error, &["code"]).ok().flatten();
        let is_meant = |raw: &&str| raw.parse() == Ok(code::INVALID_PARAMS);
        let edited = raw.filter(is_meant).and_then(|raw| {
            let edit = Edit::new(error).replace(raw, code::RESOURCE_NOT_FOUND.to_string()).ok()?;
            String::from_utf8(edit.finish().to_vec()).ok()
        });
        edited.map_or(Cow::Borrowed(error), Cow::Owned)
    }
}

/// The result without the members of sessionless protocols; `None` if it has none.
fn for_sessionful(result: &str) -> Option<String> {
    let is_newer =
        |raw: &str| text(raw).is_some_and(|key| SESSIONLESS_MEMBERS.contains(&key.as_ref()));
    let all = entries(result).ok().flatten()?;
    let meta = all.iter().find(|(key, _)| text(key).as_deref() == Some("_meta"));
    let meta = meta.and_then(|(_, meta)| without_server_info(meta));
    if meta.is_none() && !all.iter().any(|(key, _)| is_newer(key)) {
        return None;
    }
    let kept = all.into_iter().filter(|(key, _)| !is_newer(key));
    let kept = kept.filter_map(|(key, value)| match &meta {
        Some(meta) if text(key).as_deref() == Some("_meta") => {
            (meta != "{}").then(|| format!("{key}:{meta}"))
        }
        _ => Some(format!("{key}:{value}")),
    });
    Some(format!("{{{}}}", kept.collect::<Vec<_>>().join(",")))
}

/// The `_meta` of a result without the description of the server, which sessionful protocols send
/// once; `None` if it has none.
fn without_server_info(meta: &str) -> Option<String> {
    let is_info = |raw: &str| text(raw).as_deref() == Some(key::SERVER_INFO);
    let all = entries(meta).ok().flatten()?;
    let count = all.len();
    let kept = all.into_iter().filter(|(key, _)| !is_info(key));
    let kept: Vec<_> = kept.map(|(key, value)| format!("{key}:{value}")).collect();
    (kept.len() < count).then(|| format!("{{{}}}", kept.join(",")))
}

/// Marks a filtered list as private to its grant.
fn for_one_grant(list: &str) -> Option<String> {
    memmem::find(list.as_bytes(), b"cacheScope")?;
    let scope = peek(list, &["cacheScope"]).ok()??;
    let edit = Edit::new(list).replace(scope, "\"private\"").ok()?;
    String::from_utf8(edit.finish().to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_agents_see_older_results() {
        let cases = [
            (r#"{"content":[],"x":1.0}"#, None),
            (r#"{"resultType":"complete","content":[ 1.0 ]}"#, Some(r#"{"content":[ 1.0 ]}"#)),
            (
                r#"{"tools":[{"ttlMs":1}],"ttlMs":0,"cacheScope":"public","resultType":"complete"}"#,
                Some(r#"{"tools":[{"ttlMs":1}]}"#),
            ),
            (
                r#"{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n"},"k":1.0}}"#,
                Some(r#"{"content":[],"_meta":{"k":1.0}}"#),
            ),
            (
                r#"{"_meta":{"io.modelcontextprotocol\u002fserverInfo":{}},"resultType":"complete"}"#,
                Some("{}"),
            ),
            (
                r#"{"_meta":{},"content":[{"_meta":{"io.modelcontextprotocol/serverInfo":1}}]}"#,
                None,
            ),
            ("7", None),
        ];
        for (result, expected) in cases {
            assert_eq!(for_sessionful(result).as_deref(), expected, "{result}");
        }
        let list = r#"{"tools":[],"cacheScope":"public"}"#;
        let private = r#"{"tools":[],"cacheScope":"private"}"#;
        assert_eq!(for_one_grant(list).as_deref(), Some(private));
        assert_eq!(for_one_grant(r#"{"tools":[]}"#), None);
    }
}
