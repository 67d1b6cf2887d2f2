//! Parked calls, which wait for the next request of their client.
//!
//! A sessionful server sends a request during a call; a client of protocol 2026-07-28 receives it with
//! the answer to its own request and responds with the next one. In between the call is parked here,
//! under a sealed `requestState` that identifies it.
//!
//! Invariant: a call continues only for the grant, the endpoint and the request that started it, once
//! for each state, within [`ROUND_TIMEOUT`].
//! Invariant: a refused retry changes nothing, and of an accepted retry the server receives only the
//! input responses.
//!
//! Start at [`park`] and [`resume`].

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::sleep;
use toolgate_admission::answer_kind::AnswerKind;
use toolgate_admission::call_request::CallRequest;
use toolgate_admission::clearance::Clearance;
use toolgate_admission::multi_round::Retry;
use toolgate_admission::sealed_token::{STATES, Seal};
use toolgate_audit::Hash;
use toolgate_json::{peek, text};
use toolgate_mcp::{Refusal, code};
use toolgate_upstream::failure::Failure;

use super::ImplicitSession;
use super::bound::bound;
use super::call::RunningCall;
use super::input_requests::InputRequest;
use crate::downstream::agent::AgentSession;

/// How long a call waits for its client.
const ROUND_TIMEOUT: Duration = Duration::from_mins(10);

/// All parked calls.
pub(crate) struct ParkedCalls {
    /// Distinguishes states of this process from those of earlier ones.
    run: String,
    all: Mutex<HashMap<String, Parked>>,
}

/// A parked call.
struct Parked {
    call: RunningCall,
    question: InputRequest,
}

/// The result of a retry.
pub(super) enum Resumed {
    /// The call continues.
    Continues(RunningCall),
    /// This is the answer.
    Answer(Bytes),
}

/// The content of a sealed state.
struct State {
    run: String,
    place: String,
    /// What it is bound to.
    bound: String,
    /// When it expires, in milliseconds.
    until: i64,
}

// === impl ParkedCalls ===

impl ParkedCalls {
    pub(crate) fn new(run: String) -> Arc<Self> {
        Arc::new(Self { run, all: Mutex::default() })
    }

    /// Removes the calls of an agent session.
    pub(crate) fn clear(&self, session: u64) {
        let gone: Vec<_> = {
            let mut all = self.all.lock();
            all.extract_if(|_, parked| parked.call.session().key() == session).collect()
        };
        drop(gone);
    }

    fn put(&self, place: String, parked: Parked) {
        self.all.lock().insert(place, parked);
    }

    fn take(&self, place: &str) -> Option<Parked> {
        self.all.lock().remove(place)
    }

    /// Removes a call whose client does not continue it in time.
    fn watch(self: &Arc<Self>, place: String) {
        let me: Weak<Self> = Arc::downgrade(self);
        tokio::spawn(async move {
            sleep(ROUND_TIMEOUT).await;
            let given_up = me.upgrade().and_then(|me| me.take(&place));
            drop(given_up);
        });
    }
}

/// The result of parking a call.
pub(super) enum ParkOutcome {
    /// It waits for its client; this is the answer to the request. `None` if it cannot be parked; then
    /// it is cancelled.
    Parked(Option<Bytes>),
    /// It ended before that; its messages are still to be read.
    Ended(Box<RunningCall>),
}

/// Ends a round with `input_required` and parks the call.
pub(super) async fn park(call: RunningCall, question: InputRequest) -> ParkOutcome {
    if call.end_round().await {
        ParkOutcome::Parked(keep(call, question))
    } else {
        ParkOutcome::Ended(Box::new(call))
    }
}

fn keep(call: RunningCall, question: InputRequest) -> Option<Bytes> {
    let ImplicitSession { session, clients } = call.implicit().clone();
    let (admission, parked_calls) = (session.admission(), &clients.parked_calls);
    let place: String = Hash::of(&admission.random()?).to_string();
    let until = admission.now().as_millisecond() + i64::try_from(ROUND_TIMEOUT.as_millis()).ok()?;
    let bound = call.bound().to_owned();
    let state = State { run: parked_calls.run.clone(), place: place.clone(), bound, until };
    let sealed =
        Seal::new(&admission.secret(), STATES)?.close(&state.to_json(), admission.random()?)?;
    let message = question.ask(call.id(), &sealed)?;
    parked_calls.put(place.clone(), Parked { call, question });
    parked_calls.watch(place);
    Some(message)
}

/// Continues the call that a request names by its `requestState`, raw JSON.
pub(super) async fn resume(
    implicit: &ImplicitSession,
    raw: &str,
    request: &CallRequest<'_>,
) -> Result<Resumed, Refusal> {
    let ImplicitSession { session, clients } = implicit;
    let (admission, parked_calls) = (session.admission(), &clients.parked_calls);
    let sealed = text(raw).unwrap_or_default();
    let opened = Seal::new(&admission.secret(), STATES).and_then(|seal| seal.open(&sealed));
    let Some(state) = opened.and_then(|opened| State::of(&opened)) else {
        return Err(refusal("this `requestState` is not valid; make the call again without it"));
    };
    if admission.now().as_millisecond() > state.until {
        return Err(refusal("this `requestState` has expired; make the call again"));
    }
    if state.bound != bound(session, request)? {
        let why = "this `requestState` belongs to another request: send the same one again, with \
                   `inputResponses`";
        return Err(refusal(why));
    }
    if state.run != parked_calls.run {
        return Ok(Resumed::Answer(lost(session, request)));
    }
    let Some(parked) = parked_calls.take(&state.place) else {
        return Err(refusal("this `requestState` was used, or its call has ended"));
    };
    let Some(answer) = Answer::of(&parked.question, request) else {
        // The state stays valid.
        let again = parked.question.ask(request.id, &sealed);
        parked_calls.put(state.place, parked);
        return again
            .map(Resumed::Answer)
            .ok_or_else(|| refusal("the input cannot be requested again"));
    };
    continue_call(session, parked_calls, state, parked, answer, request).await
}

/// The input of a retry.
enum Answer<'a> {
    /// The response to the pending request, raw JSON.
    To(&'a str),
    /// The whole request, for a sessionless server.
    Whole,
}

impl<'a> Answer<'a> {
    /// `None` if the input is missing.
    fn of(question: &InputRequest, request: &CallRequest<'a>) -> Option<Self> {
        match question {
            InputRequest::InResult(_) => Some(Self::Whole),
            InputRequest::Pending(asked) => {
                // Duplicate keys were rejected before.
                let path = ["inputResponses", asked.key()];
                let answer = peek(request.params.unwrap_or("{}"), &path).ok().flatten();
                answer.filter(|answer| answer.starts_with('{')).map(Self::To)
            }
        }
    }
}

/// Delivers the client's input, if the call is still allowed.
async fn continue_call(
    session: &Arc<AgentSession>,
    parked_calls: &ParkedCalls,
    state: State,
    parked: Parked,
    answer: Answer<'_>,
    request: &CallRequest<'_>,
) -> Result<Resumed, Refusal> {
    match parked.call.next_round(session.sender()).await {
        // It ended while it was parked; its answer is still to be read.
        None if parked.call.has_ended() => {
            let Parked { mut call, question } = parked;
            drop(question);
            call.set_round(request);
            Ok(Resumed::Continues(call))
        }
        None => Ok(Resumed::Answer(lost(session, request))),
        Some(Err(refused)) => {
            // The timeout may have passed meanwhile.
            if session.admission().now().as_millisecond() <= state.until {
                parked_calls.put(state.place, parked);
            }
            Ok(Resumed::Answer(refused.answer(request.id, AnswerKind::of(request.method))))
        }
        Some(Ok(permit)) => {
            let Parked { mut call, question } = parked;
            match (question, answer) {
                // A response to a request of the server needs no permit.
                (InputRequest::Pending(asked), Answer::To(answer)) => {
                    if let Some(permit) = permit {
                        Clearance::Permit(permit).spend();
                    }
                    asked.answer(answer).await;
                }
                // The server checks it.
                (question, _) => {
                    drop(question);
                    if let Some(permit) = permit {
                        call.retry(Retry { raw: request.raw.to_owned(), permit });
                    }
                }
            }
            call.set_round(request);
            Ok(Resumed::Continues(call))
        }
    }
}

/// The call was lost with an earlier process.
fn lost(session: &AgentSession, request: &CallRequest<'_>) -> Bytes {
    let failure =
        Failure::Lost { why: "toolgate was restarted while it waited for you".to_owned() };
    let server = session.endpoint().to_string();
    failure.answer(&server, request.id, AnswerKind::of(request.method), None)
}

fn refusal(why: &str) -> Refusal {
    Refusal { code: code::INVALID_PARAMS, message: why.to_owned(), id: None }
}

// === impl State ===

impl State {
    fn to_json(&self) -> String {
        let Self { run, place, bound, until } = self;
        json!({"run": run, "place": place, "bound": bound, "until": until}).to_string()
    }

    fn of(json: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(json).ok()?;
        let part = |key: &str| Some(value.get(key)?.as_str()?.to_owned());
        Some(Self {
            run: part("run")?,
            place: part("place")?,
            bound: part("bound")?,
            until: value.get("until")?.as_i64()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_as_written() {
        let state = State { run: "r".into(), place: "p".into(), bound: "b\"".into(), until: -7 };
        let read = State::of(&state.to_json()).unwrap();
        assert_eq!(
            (read.run, read.place, read.bound, read.until),
            ("r".into(), "p".into(), "b\"".into(), -7)
        );
        for other in ["", "{}", r#"{"run":"r","place":"p","bound":"b","until":"7"}"#] {
            assert!(State::of(other).is_none(), "{other}");
        }
    }
}
