//! `input_required`: a sessionless server needs input before it continues a call.
//!
//! A sessionless agent receives the server's own result and continues with its next request
//! (`sessionless/parked_calls.rs`). A sessionful agent is asked during the call, as servers of its
//! protocol do, and the request is sent again with its answers.
//!
//! Invariant: a request is sent again only with answers to questions of the server, and at most
//! [`MAX_ROUNDS`] times for a sessionful agent.
//! Invariant: between two rounds the request waits under its next number, so that it can be
//! cancelled, and its timeout is suspended.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use toolgate_admission::ended::Ended;
use toolgate_admission::multi_round::OF_ROUND;
use toolgate_audit::Effect;
use toolgate_json::{Edit, EditError, entries, members, peek, quote, text};
use toolgate_mcp::{Payload, Refusal, code, method, write};
use toolgate_store::Permit;

use super::Link;
use super::agent::Agent;
use super::inbound::QUESTION;
use super::missing_capability::can_answer;
use super::pending::Pending;
use super::server_request::{Requester, ServerRequest};
use super::waiting::{AgentWaiter, Bridge, Waiter};
use crate::event_buffer::EventBuffer;
use crate::failure::Failure;
use crate::label;

/// How many questions of one round an agent is asked.
const MAX_QUESTIONS: usize = 100;
/// How many times a sessionful agent is asked during one call. Each time the request is written
/// again.
const MAX_ROUNDS: usize = 10;

/// A result that requires input.
pub(crate) struct InputRequired {
    waiting: AgentWaiter,
    answer: oneshot::Receiver<Settled>,
    /// The complete result.
    result: String,
}

impl fmt::Debug for InputRequired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InputRequired").finish_non_exhaustive()
    }
}

/// How a request ended, or what the server asks for first.
pub(super) type Settled = Result<Ended, Box<InputRequired>>;

/// What follows a result that requires input.
pub(super) enum Next {
    /// The request is sent again with this body, under its own permit if it has one.
    Round(Bytes, Option<Permit>),
    /// The call is over.
    Over(Ended),
}

/// Whether a result requires input.
pub(super) fn is_input_required(result: &str) -> bool {
    let kind = peek(result, &["resultType"]).ok().flatten().and_then(text);
    kind.as_deref() == Some("input_required")
}

/// Receives a result that requires input.
pub(super) fn receive_input_required(mut waiting: AgentWaiter, result: &str) {
    let (next, answer) = oneshot::channel();
    let answered = std::mem::replace(&mut waiting.answered, next);
    let asks = InputRequired { waiting, answer, result: result.to_owned() };
    if let Err(Err(asks)) = answered.send(Err(Box::new(asks))) {
        asks.waiting.reply.skip_answer();
    }
}

impl Link {
    /// Has the agent asked, and builds the request of the next round.
    pub(super) async fn next_round(
        self: &Arc<Self>,
        pending: &mut Pending,
        asks: InputRequired,
    ) -> Result<Next, Failure> {
        let InputRequired { mut waiting, answer, result } = asks;
        let (bridge, buffer) = (waiting.bridge, Arc::clone(waiting.reply.buffer()));
        let id: Box<str> = waiting.reply.id().into();
        let mapped = waiting.mapped;
        if bridge == Some(Bridge::Passthrough) && pending.sessionless.is_none() {
            buffer.mark_sessionless();
            let named = mapped.then(|| label::result(&result, self.server.name())).flatten();
            waiting.reply.result(named.as_deref().unwrap_or(&result));
            return Ok(Next::Over(Ended::answered(Payload::Result(&result), None)));
        }
        waiting.epoch = None;
        waiting.bridge = Some(Bridge::AskingAgent);
        let number = self.waiting.number();
        self.waiting.insert(number, Waiter::Agent(waiting));
        pending.unanswered.number = number;
        pending.answer = answer;
        if bridge == Some(Bridge::Passthrough) {
            buffer.mark_sessionless();
            let named = mapped.then(|| label::result(&result, self.server.name())).flatten();
            buffer.push(write::result(&id, named.as_deref().unwrap_or(&result)));
            return self.wait_for_retry(pending, &result).await;
        }
        pending.rounds += 1;
        if pending.rounds > MAX_ROUNDS {
            return Err(Failure::Lost { why: format!("it asked more than {MAX_ROUNDS} times") });
        }
        let asking = self.ask_sessionful(number, &buffer, &result);
        let answers = tokio::select! {
            biased;
            ended = &mut pending.answer => return Ok(Next::Over(over(ended))),
            answers = asking => answers?,
        };
        let state = peek(&result, &["requestState"]).ok().flatten();
        let leg = continued(&pending.body, number, &answers, state);
        leg.map(|leg| Next::Round(leg, None))
            .map_err(|refusal| Failure::unavailable(refusal.message))
    }

    /// Waits for the client's next request.
    async fn wait_for_retry(&self, pending: &mut Pending, result: &str) -> Result<Next, Failure> {
        let number = pending.unanswered.number;
        let _asked = Waits::new(self);
        let Some(sessionless) = &mut pending.sessionless else {
            return Ok(Next::Over(over(Err(()))));
        };
        let retry = tokio::select! {
            biased;
            ended = &mut pending.answer => return Ok(Next::Over(over(ended))),
            retry = sessionless.retries.recv() => retry,
        };
        let Some(retry) = retry else {
            self.waiting.give_up(number);
            return Ok(Next::Over(over(Err(()))));
        };
        let state = peek(result, &["requestState"]).ok().flatten();
        let token = peek(&retry.raw, &["params", "_meta", "progressToken"]).ok().flatten();
        self.waiting.set_token(number, token);
        let leg = retried(&pending.body, &retry.raw, number, state);
        leg.map(|leg| Next::Round(leg, Some(retry.permit)))
            .map_err(|refusal| Failure::unavailable(refusal.message))
    }

    /// Asks a sessionful agent all questions of the server; returns the answers in the server's
    /// form.
    async fn ask_sessionful(
        self: &Arc<Self>,
        number: u64,
        buffer: &Arc<EventBuffer>,
        result: &str,
    ) -> Result<String, Failure> {
        let lost = |why: String| Failure::Lost { why };
        let gone = || lost("the agent session has ended".into());
        let session = self.agent_of(number).ok_or_else(gone)?;
        let wanted = peek(result, &["inputRequests"]).ok().flatten().unwrap_or("{}");
        let wanted = entries(wanted).ok().flatten().unwrap_or_default();
        if wanted.is_empty() {
            return Err(lost("it wants the request again and asks nothing".into()));
        }
        if wanted.len() > MAX_QUESTIONS {
            return Err(lost(format!("it asks {} things at once", wanted.len())));
        }
        let (tell, mut answers) = mpsc::unbounded_channel();
        let mut questions = Questions { link: self, session: &session, numbers: Vec::new() };
        for (key, request) in &wanted {
            let key = text(key).unwrap_or_default();
            let asked = questions.ask(&key, request, buffer, &tell);
            asked.map_err(|error| lost(error.to_string()))?;
        }
        drop(tell);
        let mut given = Vec::with_capacity(wanted.len());
        while given.len() < wanted.len() {
            let (key, answer) = answers.recv().await.ok_or_else(gone)?;
            let asked = wanted.iter().find(|(raw, _)| text(raw).as_deref() == Some(&*key));
            let answer = match (answer, asked) {
                (Some(answer), _) => answer,
                (None, Some((_, request))) if method_of(request) == method::ELICITATION_CREATE => {
                    r#"{"action":"cancel"}"#.to_owned()
                }
                (None, _) => return Err(lost("the agent did not answer what it asked".into())),
            };
            given.push(format!("{}:{answer}", quote(&key)));
        }
        Ok(format!("{{{}}}", given.join(",")))
    }
}

/// Why an agent is not asked a question.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum QuestionError {
    #[error("it asks `{0}`, which the agent cannot answer")]
    Unsupported(String),
    #[error("the agent has too many requests to answer already")]
    TooMany,
    #[error("its question cannot be parsed")]
    Unreadable,
}

/// Questions to a sessionful agent; dropping it withdraws those without an answer.
struct Questions<'l> {
    link: &'l Link,
    session: &'l Arc<dyn Agent>,
    numbers: Vec<u64>,
}

impl Questions<'_> {
    fn ask(
        &mut self,
        key: &str,
        request: &str,
        buffer: &Arc<EventBuffer>,
        tell: &mpsc::UnboundedSender<(Box<str>, Option<String>)>,
    ) -> Result<(), QuestionError> {
        let [method, params] = members(request, ["method", "params"]).unwrap_or_default();
        let method = method.and_then(text).unwrap_or_default();
        if !can_answer(&**self.session, &method) {
            return Err(QuestionError::Unsupported(method.into_owned()));
        }
        let asked = ServerRequest {
            link: self.link.me.clone(),
            // It outlives any channel: the server keeps no state of it.
            epoch: u64::MAX,
            requester: Requester::Call { key: key.into(), tell: tell.clone() },
            buffer: Arc::clone(buffer),
            until: Instant::now() + QUESTION,
        };
        let number = self.session.ask(asked);
        let number = number.ok_or(QuestionError::TooMany)?;
        self.link.server_requests.fetch_add(1, Ordering::Relaxed);
        self.numbers.push(number);
        let server = self.link.server.name();
        let named = if self.session.sees_one_server() {
            None
        } else {
            label::params(&method, params, server).map_err(|_| QuestionError::Unreadable)?
        };
        buffer.push(write::request(number, &method, named.as_deref().or(params)));
        Ok(())
    }
}

impl Drop for Questions<'_> {
    fn drop(&mut self) {
        for number in self.numbers.drain(..) {
            if self.session.drop_server_request(number) {
                self.link.server_request_done();
            }
        }
    }
}

/// While this lives, the timeouts of calls over the link are suspended.
struct Waits<'l>(&'l Link);

impl<'l> Waits<'l> {
    fn new(link: &'l Link) -> Self {
        link.server_requests.fetch_add(1, Ordering::Relaxed);
        Self(link)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.server_request_done();
    }
}

/// How a request ended that waits for nothing more.
pub(super) fn over<E>(settled: Result<Settled, E>) -> Ended {
    settled.ok().and_then(Result::ok).unwrap_or(Ended::cancelled(Effect::Unknown))
}

fn method_of(request: &str) -> String {
    let method = peek(request, &["method"]).ok().flatten().and_then(text);
    method.map(std::borrow::Cow::into_owned).unwrap_or_default()
}

/// The request of a sessionful agent for the next round, with its answers.
fn continued(
    body: &Bytes,
    number: u64,
    answers: &str,
    state: Option<&str>,
) -> Result<Bytes, Refusal> {
    let raw = String::from_utf8_lossy(body);
    let [id, params] = members(&raw, ["id", "params"])?;
    let (Some(id), Some(params)) = (id, params) else { return Err(nothing()) };
    let token = peek(params, &["_meta", "progressToken"])?;
    let mut edit = Edit::new(&raw).replace(id, number.to_string()).map_err(cannot)?;
    if let Some(token) = token {
        edit = edit.replace(token, number.to_string()).map_err(cannot)?;
    }
    let state = state.map(|state| format!(r#","requestState":{state}"#)).unwrap_or_default();
    let more = format!(r#""inputResponses":{answers}{state}"#);
    Ok(edit.insert_raw(params, &more).map_err(cannot)?.finish())
}

/// The next request of a client as the server receives it: the admitted request, with the client's
/// answers, the server's own state, and the client's description of this message.
fn retried(
    decided: &Bytes,
    retry: &str,
    number: u64,
    state: Option<&str>,
) -> Result<Bytes, Refusal> {
    let raw = String::from_utf8_lossy(decided);
    let [id, params] = members(&raw, ["id", "params"])?;
    let (Some(id), Some(params)) = (id, params) else { return Err(nothing()) };
    let is_kept = |raw: &str| text(raw).is_none_or(|key| !OF_ROUND.contains(&key.as_ref()));
    let all = entries(params)?.unwrap_or_default().into_iter().filter(|(key, _)| is_kept(key));
    let mut all: Vec<_> = all.map(|(key, value)| format!("{key}:{value}")).collect();
    let [answers, meta] = match peek(retry, &["params"])? {
        Some(params) => members(params, ["inputResponses", "_meta"])?,
        None => [None, None],
    };
    all.extend(answers.map(|answers| format!(r#""inputResponses":{answers}"#)));
    all.extend(state.map(|state| format!(r#""requestState":{state}"#)));
    if let Some(meta) = meta {
        let mut edit = Edit::new(meta);
        if let Some(token) = peek(meta, &["progressToken"])? {
            edit = edit.replace(token, number.to_string()).map_err(cannot)?;
        }
        all.push(format!(r#""_meta":{}"#, String::from_utf8_lossy(&edit.finish())));
    }
    let edit = Edit::new(&raw).replace(id, number.to_string()).map_err(cannot)?;
    let edit = edit.replace(params, format!("{{{}}}", all.join(","))).map_err(cannot)?;
    Ok(edit.finish())
}

fn cannot(error: EditError) -> Refusal {
    Refusal { code: code::INVALID_PARAMS, message: error.to_string(), id: None }
}

fn nothing() -> Refusal {
    Refusal { code: code::INVALID_PARAMS, message: "the request has no params".into(), id: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_request_goes_on_with_answers() {
        let body = Bytes::from_static(br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","n":1.0,"_meta":{"progressToken":7}}}"#);
        let leg = continued(&body, 9, r#"{"a":{}}"#, Some("\"s\"")).unwrap();
        assert_eq!(
            leg,
            r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"inputResponses":{"a":{}},"requestState":"s","name":"t","n":1.0,"_meta":{"progressToken":9}}}"#
        );
    }

    #[test]
    fn a_retry_is_what_was_decided_with_the_servers_own_state_and_the_answers() {
        let decided = Bytes::from_static(br#"{"id":7,"params":{"name":"t","arguments":{"n":1.0},"requestState":"old","_meta":{"progressToken":7}}}"#);
        let retry = r#"{"id":"x","params":{"name":"files__t","arguments":{"n":2},"task":{},"requestState":"ours","inputResponses":{"a":1.0},"_meta":{"progressToken":"p"}}}"#;
        assert_eq!(
            retried(&decided, retry, 9, Some("\"theirs\"")).unwrap(),
            r#"{"id":9,"params":{"name":"t","arguments":{"n":1.0},"inputResponses":{"a":1.0},"requestState":"theirs","_meta":{"progressToken":9}}}"#
        );
        assert_eq!(
            retried(&decided, r#"{"id":"x","params":{}}"#, 9, None).unwrap(),
            r#"{"id":9,"params":{"name":"t","arguments":{"n":1.0}}}"#
        );
    }
}
