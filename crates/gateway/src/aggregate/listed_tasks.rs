//! `tasks/list` on `/mcp`: the tasks of all servers that list them.
//!
//! Invariant: each server receives the request under its own permit, and the agent sees only tasks
//! that calls of its grant created.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolgate_admission::answer_kind::AnswerKind;
use toolgate_admission::call_request::CallRequest;
use toolgate_admission::contained::{Work, contained};
use toolgate_admission::describe::describe;
use toolgate_admission::ended::Ended;
use toolgate_admission::holds::HeldCaller;
use toolgate_admission::pipeline::{self, Delivery, Sending};
use toolgate_admission::refused::Refused;
use toolgate_admission::user_question::UserQuestion;
use toolgate_audit::{Effect, Outcome};
use toolgate_json::{items, members, peek};
use toolgate_mcp::{OwnedRequest, Request, code, method, write};
use toolgate_policy::Class;
use toolgate_upstream::event_buffer::{EventBuffer, First};
use toolgate_upstream::forward::forward;
use toolgate_upstream::link::{AgentRequest, Link};
use toolgate_upstream::reply::Reply;
use toolgate_upstream::rewrite::with_error;

use crate::downstream::agent::AgentSession;

/// The timeout of a server's task list, and the maximum number of its pages.
const LISTING: Duration = Duration::from_millis(1_500);
const MAX_PAGES: usize = 10;

/// Lists the tasks of all servers.
pub(super) fn list(session: &Arc<AgentSession>, id: &str, buffer: &Arc<EventBuffer>) -> Work {
    let (session, reply) = (Arc::clone(session), Reply::new(buffer, id, AnswerKind::Other));
    contained(async move || {
        let mut asked = JoinSet::new();
        for (place, link) in session.links().iter().enumerate() {
            let advertised = link.server().list_cache.of(link.client_profile());
            let lists = advertised.is_some_and(|advertised| advertised.can("tasks"));
            if lists && link.is_up() && !link.is_sessionless() {
                let (session, link) = (Arc::clone(&session), Arc::clone(link));
                asked.spawn(async move {
                    let listed = timeout(LISTING, tasks_of(&session, &link)).await;
                    (place, listed.unwrap_or_default())
                });
            }
        }
        if asked.is_empty() {
            return nothing(&session, reply).await;
        }
        let (mut all, mut refused) = (BTreeMap::new(), None);
        while let Some(answered) = asked.join_next().await {
            let Ok((place, (tasks, error))) = answered else { continue };
            all.insert(place, tasks);
            refused = refused.or(error);
        }
        let all = all.into_values().flatten().collect::<Vec<_>>();
        let answer = match refused {
            // No server returned tasks; the agent receives the first error.
            Some(error) if all.is_empty() => with_error(reply.id(), &error),
            _ => write::result(reply.id(), &format!(r#"{{"tasks":[{}]}}"#, all.join(","))),
        };
        reply.answer(answer);
    })
}

/// The answer if no server lists tasks; the policy decides the request first.
async fn nothing(session: &Arc<AgentSession>, reply: Reply) {
    let request = Request { raw: "{}", id: "0", method: method::TASKS_LIST.into(), params: None };
    let request = CallRequest::read(&request);
    let context = request.and_then(|request| describe(session, "", &request, None, Class::by_name));
    let Ok(context) = context else {
        let why = "the request was not admitted";
        let error = write::error(Some(reply.id()), code::INTERNAL_ERROR, why, None);
        return reply.answer(error);
    };
    let prepared = |_, context| ready(Some((Nothing(reply), context)));
    pipeline::run(session.admission(), context, None, prepared).await;
}

/// The delivery of a request for tasks that no server receives.
struct Nothing(Reply);

/// No rule holds a method, so it never waits for a person.
impl HeldCaller for Nothing {
    fn hold_progress(&self, _: Duration, _: Duration, _: &str) {}

    async fn agent_gone(&mut self) {
        std::future::pending::<()>().await;
    }

    fn ask_user(&self, _: &str) -> Option<UserQuestion> {
        None
    }
}

impl Delivery for Nothing {
    const HAS_PEER: bool = false;

    fn refuse(self, refused: &Refused) {
        self.0.refuse(refused);
    }

    async fn send(self, _: Sending<'_>) -> Ended {
        self.0.result(r#"{"tasks":[]}"#);
        Ended::new(Outcome::Ok, Effect::NotStarted)
    }
}

/// The tasks of one server as shown to the agent, and the error that ended the list.
async fn tasks_of(session: &Arc<AgentSession>, link: &Arc<Link>) -> (Vec<String>, Option<String>) {
    let (mut all, mut cursor) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let params = cursor.take().map(|cursor: String| format!(r#"{{"cursor":{cursor}}}"#));
        let Some(answer) = ask(session, link, params.as_deref()).await else { break };
        let answer = String::from_utf8_lossy(&answer);
        let [result, error] = members(&answer, ["result", "error"]).unwrap_or_default();
        if let Some(error) = error {
            return (all, Some(error.to_owned()));
        }
        let result = result.unwrap_or("{}");
        let tasks = peek(result, &["tasks"]).ok().flatten();
        let tasks = tasks.and_then(|raw| items(raw).ok()?).unwrap_or_default();
        all.extend(tasks.into_iter().map(str::to_owned));
        let next = peek(result, &["nextCursor"]).ok().flatten();
        cursor = next.filter(|raw| raw.starts_with('"')).map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    (all, None)
}

/// Requests one page, as a request of the agent.
async fn ask(session: &Arc<AgentSession>, link: &Arc<Link>, params: Option<&str>) -> Option<Bytes> {
    let number = session.next_number();
    let buffer = Arc::new(EventBuffer::expecting(number, 1));
    let request = OwnedRequest::write(number, method::TASKS_LIST, params);
    let work = {
        let request = request.request();
        let ask = AgentRequest { mapped: true, ..AgentRequest::default() };
        forward(session, link, CallRequest::read(&request).ok()?, &ask, &buffer).ok()?
    };
    work.await;
    match buffer.first().await {
        First::Answer(answer, _) => Some(answer.into_bytes()),
        First::Stream => None,
    }
}
