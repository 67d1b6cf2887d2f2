//! What a server of protocol 2026-07-28 answers, as an agent is to see it.
//!
//! Invariant: an agent that speaks the same protocol gets the server's own bytes, but for what its
//! grant must not see and the names of `/mcp`.

use std::borrow::Cow;

use memchr::memmem;
use toolgate_admission::expects::Expects;
use toolgate_admission::list_kind::Kind;
use toolgate_admission::task_call::Made;
use toolgate_json::{Edit, entries, peek, text};
use toolgate_mcp::code;

use super::Link;
use super::waiting::{AgentWaiting, Bridge, Hides};
use crate::label;
use crate::lists::{Unreadable, without_hidden};
use crate::shown::{may_show_uris, show_uris};
use crate::tasks::{Answer, Role, may_name};

/// What older protocols do not have in a result.
const NEWER: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

impl Link {
    /// The result as the agent is to see it, before its tasks are renamed; `None` if it passes
    /// unchanged. A list that the filter cannot read is rejected.
    pub(super) fn result_for_agent(
        &self,
        waiting: &AgentWaiting,
        result: &str,
    ) -> Result<Option<String>, Unreadable> {
        let older = waiting.newer == Some(Bridge::Older);
        let mut shown = None;
        match waiting.reply.expects() {
            Expects::Tools => self.server.heard.learn(Kind::Tools, result),
            Expects::Prompts => self.server.heard.learn(Kind::Prompts, result),
            _ => {}
        }
        if waiting.reply.expects() == Expects::Tools {
            let broken = self.server.annotations.learn(result);
            if older && !broken.is_empty() {
                shown = without_hidden(Kind::Tools, result, |own| broken.contains(own))?;
            }
        }
        if older {
            let now = shown.as_deref().unwrap_or(result);
            shown = for_older(now).or(shown);
        }
        if let Some(Hides { kind, grant, now }) = &waiting.hides {
            let list = shown.as_deref().unwrap_or(result);
            let hidden = |own: &str| self.server.is_hidden_from(grant, *kind, own, *now);
            shown = without_hidden(*kind, list, hidden)?.or(shown);
            let list = shown.as_deref().unwrap_or(result);
            shown = for_one_grant(list).or(shown);
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

    /// What is said of a task, with the URIs in the result of its call as they are shown.
    fn task_result(&self, waiting: &AgentWaiting, said: &str) -> Option<String> {
        matches!(waiting.role, Role::Task { .. }).then_some(())?;
        let result = peek(said, &["result"]).ok()??;
        let shown = show_uris(result, &self.server.naming)?;
        let edit = Edit::new(said).replace(result, shown).ok()?;
        String::from_utf8(edit.finish().to_vec()).ok()
    }

    /// The result with the tasks that it speaks of as the agent knows them, and the task that it
    /// creates.
    pub(super) fn tasks_for_agent(
        &self,
        waiting: &AgentWaiting,
        result: &str,
    ) -> Result<(Option<String>, Option<Box<Made>>), NotShown> {
        if waiting.role == Role::Call && !may_name(result) {
            return Ok((None, None));
        }
        // Without its agent session there is nobody to show it to.
        let session = self.party(waiting.session);
        let Some(session) = session else {
            return if waiting.role == Role::Call { Ok((None, None)) } else { Err(NotShown::Task) };
        };
        let answer = Answer {
            session: &session,
            server: self.server.name(),
            role: &waiting.role,
            shared: self.is_shared(),
            watched: waiting.withheld,
        };
        let shown = answer.show(result).map_err(|_| NotShown::Task)?;
        let made = shown.made.map(|made| {
            self.hear_early(&made.own);
            let up = self.up.load_full().filter(|up| Some(up.epoch) == waiting.epoch);
            // A process takes its tasks with it; an HTTP server may keep them.
            let gone = up.and_then(|up| (!up.channel.hangs_up()).then(|| up.gone.clone()));
            Box::new(Made { gone, shortest: self.server.timeout(None), ..made })
        });
        if !waiting.withheld
            && let Role::Task { own, .. } = &waiting.role
            && let Some(heard) = answer.heard(result)
        {
            let who = (&*session.grant().label, session.key());
            session.admission().tasks.hear(who, self.server.name(), own, &heard);
        }
        Ok((shown.result, made))
    }
}

/// Why an answer is not shown.
pub(super) enum NotShown {
    /// It is a list, and nothing can be hidden in it because it cannot be read.
    List,
    /// It is about a task of somebody else, or cannot be read.
    Task,
}

impl From<Unreadable> for NotShown {
    fn from(_: Unreadable) -> Self {
        Self::List
    }
}

impl NotShown {
    /// What the agent is told.
    pub(super) fn why(&self, server: &str) -> String {
        match self {
            Self::List => format!("the list of the server `{server}` cannot be read"),
            Self::Task => format!("the server `{server}` answered about another task"),
        }
    }
}

impl AgentWaiting {
    /// The error as the agent knows it.
    pub(super) fn error_for_agent<'e>(&self, error: &'e str) -> Cow<'e, str> {
        if self.newer != Some(Bridge::Older) || self.reply.expects() != Expects::Resource {
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

/// The result without what older protocols do not have; none if there is nothing of that.
fn for_older(result: &str) -> Option<String> {
    let is_newer = |raw: &str| text(raw).is_some_and(|key| NEWER.contains(&key.as_ref()));
    let all = entries(result).ok().flatten()?;
    if !all.iter().any(|(key, _)| is_newer(key)) {
        return None;
    }
    let kept = all.into_iter().filter(|(key, _)| !is_newer(key));
    let kept: Vec<_> = kept.map(|(key, value)| format!("{key}:{value}")).collect();
    Some(format!("{{{}}}", kept.join(",")))
}

/// A list that a grant sees its own way is not for others.
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
            ("7", None),
        ];
        for (result, expected) in cases {
            assert_eq!(for_older(result).as_deref(), expected, "{result}");
        }
        let list = r#"{"tools":[],"cacheScope":"public"}"#;
        let private = r#"{"tools":[],"cacheScope":"private"}"#;
        assert_eq!(for_one_grant(list).as_deref(), Some(private));
        assert_eq!(for_one_grant(r#"{"tools":[]}"#), None);
    }
}
