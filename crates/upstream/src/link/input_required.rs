//! `input_required`: a server of protocol 2026-07-28 wants something before a call goes on.
//!
//! An agent of the same protocol is given the server's own words and goes on with its next request
//! (`sessionless/parking.rs`); one of an older protocol is asked in mid-call, as servers of its protocol
//! do, and the request is sent again with its answers.
//!
//! Invariant: a request is sent again only with answers to something that the server asked, and at
//! most [`MAX_ROUNDS`] times for an agent of an older protocol.
//! Invariant: between two legs the request waits under its next number, so that it can be
//! cancelled, and its time stands still.

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
use super::asked::{Asked, Asker};
use super::inbound::QUESTION;
use super::missing_capability::can_answer;
use super::pending::Pending;
use super::waiting::{AgentWaiting, Bridge, Waiting};
use crate::event_buffer::Outlet;
use crate::failure::Failure;
use crate::label;

/// How many questions of one leg an agent is asked.
const MAX_QUESTIONS: usize = 100;
/// How many times an agent of an older protocol is asked during one call. Each time the request is
/// written again.
const MAX_ROUNDS: usize = 10;

/// A server's wish for more.
pub(crate) struct Asks {
    waiting: AgentWaiting,
    answer: oneshot::Receiver<Settled>,
    /// Its whole result.
    result: String,
}

impl fmt::Debug for Asks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asks").finish_non_exhaustive()
    }
}

/// How a request ended, or what the server asks for first.
pub(super) type Settled = Result<Ended, Box<Asks>>;

/// What comes after a server's wish for more.
pub(super) enum Next {
    /// The request is sent again, like this, under a permit of its own if it has one.
    Leg(Bytes, Option<Permit>),
    /// It is over.
    Over(Ended),
}

/// Whether a result only asks for more.
pub(super) fn asks_for_more(result: &str) -> bool {
    let kind = peek(result, &["resultType"]).ok().flatten().and_then(text);
    kind.as_deref() == Some("input_required")
}

/// A server's answer that is none yet.
pub(super) fn hear_asks(mut waiting: AgentWaiting, result: &str) {
    let (next, answer) = oneshot::channel();
    let answered = std::mem::replace(&mut waiting.answered, next);
    let asks = Asks { waiting, answer, result: result.to_owned() };
    if let Err(Err(asks)) = answered.send(Err(Box::new(asks))) {
        asks.waiting.reply.forgo();
    }
}

impl Link {
    /// Has the agent asked, and makes the request that goes on.
    pub(super) async fn next_leg(
        self: &Arc<Self>,
        pending: &mut Pending,
        asks: Asks,
    ) -> Result<Next, Failure> {
        let Asks { mut waiting, answer, result } = asks;
        let (bridge, outlet) = (waiting.newer, Arc::clone(waiting.reply.outlet()));
        let id: Box<str> = waiting.reply.id().into();
        let mapped = waiting.mapped;
        if bridge == Some(Bridge::Same) && pending.newer.is_none() {
            outlet.mark_newer();
            let named = mapped.then(|| label::result(&result, self.server.name())).flatten();
            waiting.reply.result(named.as_deref().unwrap_or(&result));
            return Ok(Next::Over(Ended::answered(Payload::Result(&result), None)));
        }
        waiting.epoch = None;
        waiting.newer = Some(Bridge::Asking);
        let number = self.waiting.number();
        self.waiting.insert(number, Waiting::Agent(waiting));
        pending.unanswered.number = number;
        pending.answer = answer;
        if bridge == Some(Bridge::Same) {
            outlet.mark_newer();
            let named = mapped.then(|| label::result(&result, self.server.name())).flatten();
            outlet.push(write::result(&id, named.as_deref().unwrap_or(&result)));
            return self.wait_for_retry(pending, &result).await;
        }
        pending.rounds += 1;
        if pending.rounds > MAX_ROUNDS {
            return Err(Failure::Lost { why: format!("it asked more than {MAX_ROUNDS} times") });
        }
        let asking = self.ask_older(number, &outlet, &result);
        let answers = tokio::select! {
            biased;
            ended = &mut pending.answer => return Ok(Next::Over(over(ended))),
            answers = asking => answers?,
        };
        let state = peek(&result, &["requestState"]).ok().flatten();
        let leg = continued(&pending.body, number, &answers, state);
        leg.map(|leg| Next::Leg(leg, None)).map_err(|refusal| Failure::unavailable(refusal.message))
    }

    /// Waits for the client's next request.
    async fn wait_for_retry(&self, pending: &mut Pending, result: &str) -> Result<Next, Failure> {
        let number = pending.unanswered.number;
        let _asked = Waits::new(self);
        let Some(newer) = &mut pending.newer else { return Ok(Next::Over(over(Err(())))) };
        let retry = tokio::select! {
            biased;
            ended = &mut pending.answer => return Ok(Next::Over(over(ended))),
            retry = newer.retries.recv() => retry,
        };
        let Some(retry) = retry else {
            self.waiting.give_up(number);
            return Ok(Next::Over(over(Err(()))));
        };
        let state = peek(result, &["requestState"]).ok().flatten();
        let token = peek(&retry.raw, &["params", "_meta", "progressToken"]).ok().flatten();
        self.waiting.set_token(number, token);
        let leg = retried(&pending.body, &retry.raw, number, state);
        leg.map(|leg| Next::Leg(leg, Some(retry.permit)))
            .map_err(|refusal| Failure::unavailable(refusal.message))
    }

    /// Asks an agent of an older protocol everything that the server wants to know; the answers as
    /// the server wants them.
    async fn ask_older(
        self: &Arc<Self>,
        number: u64,
        outlet: &Arc<Outlet>,
        result: &str,
    ) -> Result<String, Failure> {
        let lost = |why: String| Failure::Lost { why };
        let gone = || lost("the agent session has ended".into());
        let session = self.speaker(number).ok_or_else(gone)?;
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
            questions.ask(&key, request, outlet, &tell).map_err(lost)?;
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

/// Questions to an agent of an older protocol; those without an answer are withdrawn with it.
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
        outlet: &Arc<Outlet>,
        tell: &mpsc::UnboundedSender<(Box<str>, Option<String>)>,
    ) -> Result<(), String> {
        let [method, params] = members(request, ["method", "params"]).unwrap_or_default();
        let method = method.and_then(text).unwrap_or_default();
        if !can_answer(&**self.session, &method) {
            return Err(format!("it asks `{method}`, which the agent cannot answer"));
        }
        let asked = Asked {
            link: self.link.me.clone(),
            // It outlives any channel: the server keeps nothing of it.
            epoch: u64::MAX,
            asker: Asker::Call { key: key.into(), tell: tell.clone() },
            outlet: Arc::clone(outlet),
            until: Instant::now() + QUESTION,
        };
        let number = self.session.ask(asked);
        let number = number.ok_or("the agent has too many requests to answer already")?;
        self.link.asked.fetch_add(1, Ordering::Relaxed);
        self.numbers.push(number);
        let server = self.link.server.name();
        let named = if self.session.sees_one_server() {
            None
        } else {
            label::params(&method, params, server).map_err(|_| "what it asks cannot be read")?
        };
        outlet.push(write::request(number, &method, named.as_deref().or(params)));
        Ok(())
    }
}

impl Drop for Questions<'_> {
    fn drop(&mut self) {
        for number in self.numbers.drain(..) {
            if self.session.unask(number) {
                self.link.unasked();
            }
        }
    }
}

/// While this lives, the time of calls over the link stands still.
struct Waits<'l>(&'l Link);

impl<'l> Waits<'l> {
    fn new(link: &'l Link) -> Self {
        link.asked.fetch_add(1, Ordering::Relaxed);
        Self(link)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.unasked();
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

/// The request of an agent of an older protocol, once more, with its answers.
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

/// The next request of a client, as the server is to have it: what was decided, with the client's
/// answers, the server's own state, and what the client says of this message.
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
