//! Parking: calls that wait for their client's next request.
//!
//! A server of an older protocol asks in mid-call; a client of protocol 2026-07-28 is asked with
//! the answer to its request, and gives its own answer with the next one. In between the call runs
//! on and stands here, under a `requestState` that says which call it is and is sealed.
//!
//! Invariant: a call goes on only for the grant, the endpoint and the very request that it was made
//! for, once for each state, within [`PATIENCE`].
//! Invariant: a retry that is refused leaves everything as it was, and what goes on is what was
//! decided: of a retry the server sees the answers alone.
//!
//! Start at [`park`] and [`resume`].

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::sleep;
use toolgate_admission::call_request::CallRequest;
use toolgate_admission::clearance::Clearance;
use toolgate_admission::expects::Expects;
use toolgate_admission::multi_round::Retry;
use toolgate_admission::sealed_token::{STATES, Seal};
use toolgate_audit::Hash;
use toolgate_json::{peek, text};
use toolgate_mcp::{Refusal, code};
use toolgate_upstream::failure::Failure;

use super::Standing;
use super::bound::bound;
use super::call::Going;
use super::questions::Question;
use crate::downstream::agent::AgentSession;

/// How long a call waits for its client.
const PATIENCE: Duration = Duration::from_mins(10);

/// All calls that wait for their clients.
pub(crate) struct Parking {
    /// Tells states of this process from those of others before it.
    run: String,
    all: Mutex<HashMap<String, Parked>>,
}

/// A call that waits for its client.
struct Parked {
    going: Going,
    question: Question,
}

/// What became of a retry.
pub(super) enum Resumed {
    /// The call goes on.
    Goes(Going),
    /// This is the answer.
    Answer(Bytes),
}

/// What a state says, sealed.
struct State {
    run: String,
    place: String,
    /// What it is good for.
    bound: String,
    /// Until when, in milliseconds.
    until: i64,
}

// === impl Parking ===

impl Parking {
    pub(crate) fn new(run: String) -> Arc<Self> {
        Arc::new(Self { run, all: Mutex::default() })
    }

    /// Nobody of this agent session comes back.
    pub(crate) fn clear(&self, session: u64) {
        let gone: Vec<_> = {
            let mut all = self.all.lock();
            all.extract_if(|_, parked| parked.going.session().key() == session).collect()
        };
        drop(gone);
    }

    fn put(&self, place: String, parked: Parked) {
        self.all.lock().insert(place, parked);
    }

    fn take(&self, place: &str) -> Option<Parked> {
        self.all.lock().remove(place)
    }

    /// Gives a call up when its client has not come back for too long.
    fn watch(self: &Arc<Self>, place: String) {
        let me: Weak<Self> = Arc::downgrade(self);
        tokio::spawn(async move {
            sleep(PATIENCE).await;
            let given_up = me.upgrade().and_then(|me| me.take(&place));
            drop(given_up);
        });
    }
}

/// What became of a call whose server has asked something.
pub(super) enum Asked {
    /// It waits for its client; this is the answer to the request. None if it cannot be kept, and
    /// then it is given up.
    Parked(Option<Bytes>),
    /// It was over before that; what came of it is still to be read.
    Over(Box<Going>),
}

/// Ends the request of a call with a question of the server, and keeps the call.
pub(super) async fn park(going: Going, question: Question) -> Asked {
    if going.end_leg().await {
        Asked::Parked(keep(going, question))
    } else {
        Asked::Over(Box::new(going))
    }
}

fn keep(going: Going, question: Question) -> Option<Bytes> {
    let Standing { session, clients } = going.standing().clone();
    let (admission, parking) = (session.admission(), &clients.parking);
    let place: String = Hash::of(&admission.random()?).to_string();
    let until = admission.now().as_millisecond() + i64::try_from(PATIENCE.as_millis()).ok()?;
    let bound = going.bound().to_owned();
    let state = State { run: parking.run.clone(), place: place.clone(), bound, until };
    let sealed =
        Seal::new(&admission.secret(), STATES)?.close(&state.to_json(), admission.random()?)?;
    let message = question.ask(going.id(), &sealed)?;
    parking.put(place.clone(), Parked { going, question });
    parking.watch(place);
    Some(message)
}

/// Goes on with the call that a request names by its `requestState`, raw JSON.
pub(super) async fn resume(
    standing: &Standing,
    raw: &str,
    request: &CallRequest<'_>,
) -> Result<Resumed, Refusal> {
    let Standing { session, clients } = standing;
    let (admission, parking) = (session.admission(), &clients.parking);
    let sealed = text(raw).unwrap_or_default();
    let opened = Seal::new(&admission.secret(), STATES).and_then(|seal| seal.open(&sealed));
    let Some(state) = opened.and_then(|opened| State::of(&opened)) else {
        return Err(refusal("this `requestState` is not one of ours, or has been changed"));
    };
    if admission.now().as_millisecond() > state.until {
        return Err(refusal("this `requestState` is too old; make the call anew"));
    }
    if state.bound != bound(session, request)? {
        let why = "this `requestState` belongs to another request: send the same one again, with \
                   `inputResponses`";
        return Err(refusal(why));
    }
    if state.run != parking.run {
        return Ok(Resumed::Answer(lost(session, request)));
    }
    let Some(parked) = parking.take(&state.place) else {
        return Err(refusal("this `requestState` was used, or its call has ended"));
    };
    let Some(answer) = Answer::of(&parked.question, request) else {
        // Nothing was used up: the same state is good for the answer.
        let again = parked.question.ask(request.id, &sealed);
        parking.put(state.place, parked);
        return again.map(Resumed::Answer).ok_or_else(|| refusal("it cannot be asked again"));
    };
    go_on(session, parking, state, parked, answer, request).await
}

/// What a retry brings.
enum Answer<'a> {
    /// The answer to what the server waits for, raw JSON.
    To(&'a str),
    /// Whatever a server of the same protocol makes of it.
    Whole,
}

impl<'a> Answer<'a> {
    /// None if it brings nothing.
    fn of(question: &Question, request: &CallRequest<'a>) -> Option<Self> {
        match question {
            Question::Wished(_) => Some(Self::Whole),
            Question::Asked(asked) => {
                // A key that occurs twice has been refused before.
                let path = ["inputResponses", asked.key()];
                let answer = peek(request.params.unwrap_or("{}"), &path).ok().flatten();
                answer.filter(|answer| answer.starts_with('{')).map(Self::To)
            }
        }
    }
}

/// Delivers the client's answer, if the call may still do what it does.
async fn go_on(
    session: &Arc<AgentSession>,
    parking: &Parking,
    state: State,
    parked: Parked,
    answer: Answer<'_>,
    request: &CallRequest<'_>,
) -> Result<Resumed, Refusal> {
    match parked.going.next_leg(session.sender()).await {
        None => Ok(Resumed::Answer(lost(session, request))),
        Some(Err(refused)) => {
            // Whoever watches over it may have found nothing meanwhile.
            if session.admission().now().as_millisecond() <= state.until {
                parking.put(state.place, parked);
            }
            Ok(Resumed::Answer(refused.answer(request.id, Expects::of(request.method))))
        }
        Some(Ok(permit)) => {
            let Parked { mut going, question } = parked;
            match (question, answer) {
                // An answer to what the server asked needs no permit.
                (Question::Asked(asked), Answer::To(answer)) => {
                    Clearance::Permit(permit).spend();
                    asked.answer(answer).await;
                }
                // The server judges it itself.
                (question, _) => {
                    drop(question);
                    going.retry(Retry { raw: request.raw.to_owned(), permit });
                }
            }
            going.rename(request.id);
            Ok(Resumed::Goes(going))
        }
    }
}

/// The call ran in a process that is no more.
fn lost(session: &AgentSession, request: &CallRequest<'_>) -> Bytes {
    let failure =
        Failure::Lost { why: "toolgate was restarted while it waited for you".to_owned() };
    let server = session.endpoint().to_string();
    failure.answer(&server, request.id, Expects::of(request.method), None)
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
