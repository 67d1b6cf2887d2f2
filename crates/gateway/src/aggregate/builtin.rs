//! Built-ins: the tools that toolgate itself provides.
//!
//! [`TABLE`] lists all of them; a new one is a line there and a file under `builtin/`. They are listed
//! before all other tools, and no other tool can take their names.
//!
//! Invariant: a call to a built-in takes the pipeline of every call (`admission/src/pipeline.rs`),
//! under the server name `toolgate`.
//!
//! Start at [`TABLE`] and [`start`].

mod permissions;
mod sessions;

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use toolgate_admission::access::Grant;
use toolgate_admission::answer_kind::AnswerKind;
use toolgate_admission::call_request::CallRequest;
use toolgate_admission::contained::Work;
use toolgate_admission::describe::describe;
use toolgate_admission::ended::Ended;
use toolgate_admission::holds::HeldCaller;
use toolgate_admission::pipeline::{self, Delivery, Sending};
use toolgate_admission::refused::Refused;
use toolgate_admission::reserved::TOOLGATE;
use toolgate_admission::user_question::UserQuestion;
use toolgate_audit::{CallId, Effect, Outcome};
use toolgate_json::quote;
use toolgate_mcp::Refusal;
use toolgate_policy::Class;
use toolgate_upstream::event_buffer::EventBuffer;
use toolgate_upstream::held_agent::HeldAgent;
use toolgate_upstream::lists::List;
use toolgate_upstream::reply::Reply;

use crate::dial_in::RunningCall;
use crate::downstream::agent::AgentSession;

/// Every built-in, in the order in which they are listed.
pub(crate) const TABLE: &[BuiltIn] =
    &[sessions::SESSION_LIST, sessions::TOOLS_CACHE_RESET, permissions::MY_PERMISSIONS];

/// One built-in.
pub(crate) struct BuiltIn {
    pub(crate) name: &'static str,
    pub(crate) class: Class,
    /// Whether it is about sessions, and exists only if programs can dial in.
    pub(crate) of_sessions: bool,
    /// The item of `tools/list`, raw JSON.
    pub(crate) definition: &'static str,
    /// Runs it, with the agent session and the raw arguments.
    pub(crate) run: fn(Arc<AgentSession>, String) -> Running,
}

/// The result of a built-in: its `structuredContent` as raw JSON, or an error.
pub(crate) type Running = Pin<Box<dyn Future<Output = Result<String, Failed>> + Send>>;

/// The error of a built-in.
pub(crate) struct Failed {
    pub(crate) code: &'static str,
    pub(crate) text: String,
}

/// The built-in of that name, if it exists for this agent session.
pub(crate) fn find(session: &AgentSession, name: &str) -> Option<&'static BuiltIn> {
    TABLE.iter().find(|one| one.name == name).filter(|one| one.exists(session))
}

/// The risk class of the built-in of that name.
pub(crate) fn class(name: &str) -> Option<Class> {
    TABLE.iter().find(|one| one.name == name).map(|one| one.class)
}

/// All of them as a list; [`is_shown`] decides which ones an agent sees.
pub(crate) fn list() -> &'static List {
    static LIST: OnceLock<List> = OnceLock::new();
    LIST.get_or_init(|| List::of(TABLE.iter().map(|one| (one.name, one.definition))))
}

/// Whether an agent sees the built-in of that name.
pub(crate) fn is_shown(session: &AgentSession, grant: &Grant, name: &str, now: Timestamp) -> bool {
    find(session, name).is_some_and(|one| !grant.hides_tool(TOOLGATE, name, one.class, now))
}

/// Starts a call.
pub(crate) fn start(
    session: &Arc<AgentSession>,
    built_in: &'static BuiltIn,
    request: CallRequest<'_>,
    buffer: &Arc<EventBuffer>,
) -> Result<Work, Refusal> {
    let context = describe(session, TOOLGATE, &request, Some(built_in.name), |_| built_in.class)?;
    let reply = Reply::new(buffer, request.id, AnswerKind::ToolResult);
    let reply = reply.with_call_id(Some(context.call_id));
    let agent = HeldAgent::new(session, buffer, request.progress_token);
    let running_call = session.running.enter(reply.id());
    let session_of_call = Arc::clone(session);
    let delivery = ToBuiltIn { session: session_of_call, built_in, reply, agent, running_call };
    let prepared = |_, context| ready(Some((delivery, context)));
    let rounds = request.rounds.map(|rounds| rounds.rounds);
    Ok(pipeline::run(session.admission(), context, rounds, prepared))
}

/// The delivery of a call to a built-in.
struct ToBuiltIn {
    session: Arc<AgentSession>,
    built_in: &'static BuiltIn,
    reply: Reply,
    agent: HeldAgent,
    /// Cancels it while it waits.
    running_call: RunningCall,
}

impl HeldCaller for ToBuiltIn {
    fn hold_progress(&self, waited: Duration, total: Duration, approval: &str) {
        self.agent.progress(waited, total, approval);
    }

    async fn agent_gone(&mut self) {
        tokio::select! {
            () = self.agent.left() => {}
            () = self.running_call.cancelled.cancelled() => {}
        }
    }

    fn ask_user(&self, params: &str) -> Option<UserQuestion> {
        self.agent.ask_user(params)
    }
}

impl Delivery for ToBuiltIn {
    const HAS_PEER: bool = false;

    fn refuse(self, refused: &Refused) {
        self.reply.refuse(refused);
    }

    async fn send(self, Sending { context, .. }: Sending<'_>) -> Ended {
        if self.running_call.cancelled.is_cancelled() {
            self.reply.skip_answer();
            return Ended::cancelled(Effect::NotStarted);
        }
        let done = (self.built_in.run)(self.session, context.arguments.clone()).await;
        let ended = match &done {
            Ok(_) => Ended::new(Outcome::Ok, Effect::Done),
            Err(failed) => Ended {
                code: Some(failed.code),
                ..Ended::new(Outcome::ToolError, Effect::NotStarted)
            },
        };
        self.reply.result(&result(done, context.call_id));
        ended
    }
}

impl BuiltIn {
    fn exists(&self, session: &AgentSession) -> bool {
        !self.of_sessions || session.dial_in().is_some()
    }
}

impl Failed {
    /// An error if there are arguments, because `tool` takes none.
    pub(crate) fn unless_empty(tool: &str, arguments: &str) -> Result<(), Self> {
        let given: Value = serde_json::from_str(arguments).unwrap_or_default();
        if given.is_null() || given.as_object().is_some_and(serde_json::Map::is_empty) {
            return Ok(());
        }
        Err(Self::invalid(&format!("`{tool}` takes no arguments")))
    }

    /// Invalid arguments.
    pub(crate) fn invalid(what: &str) -> Self {
        let text = format!("[INVALID ARGUMENTS] {what}. Correct it and call again.");
        Self { code: "invalid_arguments", text }
    }
}

fn result(done: Result<String, Failed>, call_id: CallId) -> String {
    match done {
        Ok(structured) => {
            let text = quote(&structured);
            format!(
                r#"{{"content":[{{"type":"text","text":{text}}}],"structuredContent":{structured},"isError":false}}"#
            )
        }
        Err(Failed { code, text }) => json!({
            "content": [{"type": "text", "text": text}],
            "isError": true,
            "_meta": {
                "error_code": code,
                "effect": "not_started",
                "call_id": call_id.to_string(),
            },
        })
        .to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_reserved_and_match_the_definitions() {
        let taken = toolgate_session::SessionSettings::default().built_ins;
        for one in TABLE {
            assert!(taken.iter().any(|name| name == one.name), "{}", one.name);
            let definition: Value = serde_json::from_str(one.definition).unwrap();
            assert_eq!(definition["name"], one.name);
        }
    }
}
