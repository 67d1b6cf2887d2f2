//! Clients of protocol 2026-07-28, which has no sessions, in front of servers that have, or have not.
//!
//! A request is put into the older protocol and sent over the agent session that stands for its
//! client (`gateway/standing.rs`); what comes back is put into the newer one again
//! (`sessionless/shape.rs`). What only the newer protocol has is answered here: `sessionless/discover.rs`,
//! `sessionless/listen.rs`. What a server asks in mid-call ends the client's request with a question
//! (`sessionless/questions.rs`); the call is parked until the client comes back (`sessionless/parking.rs`).
//!
//! Invariant: every request has an id of its own towards the standing session, so that clients
//! which number alike never meet.
//! Invariant: whoever closes the stream of a request has cancelled it.
//!
//! Start at [`start`].

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use toolgate_admission::call_request::CallRequest;
use toolgate_admission::clearance::Heads;
use toolgate_admission::contained::Work;
use toolgate_admission::multi_round::legs;
use toolgate_json::peek;
use toolgate_mcp::modern::Claims;
use toolgate_mcp::{OwnedRequest, Refusal, method};
use toolgate_upstream::event_buffer::EventBuffer;
use toolgate_upstream::event_buffer::Rejection;
use toolgate_upstream::log_level::Level;

use crate::downstream::agent::AgentSession;

mod bound;
mod call;
mod discover;
mod listen;
mod parking;
mod questions;
mod shape;
mod undeclared;

pub use call::{ModernCall, ModernStream};
pub(crate) use parking::Parking;

use bound::bound;
use call::{Asking, Calling, Interest};
use listen::Subscriptions;
use parking::{Resumed, resume};
use questions::may_ask;
use shape::Shape;
use undeclared::undeclared_task;

/// What a client says of itself with every request.
#[derive(Debug, Clone, Copy)]
pub struct Client<'a> {
    /// In the body.
    pub claims: &'a Claims<'a>,
    /// In the header `Toolgate-Session`: which of its requests belong together.
    pub session: Option<&'a str>,
    /// Its headers `Mcp-Param-*`: which arguments it repeats.
    pub parameters: &'a Heads,
}

/// A request that was started.
pub enum Started {
    /// It is on its way.
    Call(ModernCall),
    /// It goes on with a call that waited for it.
    Stream(ModernStream),
    /// This is the answer, and whether it rejects the request itself.
    Answer(Bytes, Option<Rejection>),
}

/// The agent session that stands for a client, and what is kept with it.
#[derive(Clone)]
pub(crate) struct Standing {
    session: Arc<AgentSession>,
    clients: Arc<Clients>,
}

/// What is kept for the clients of one standing session.
pub(crate) struct Clients {
    /// The log level that servers were last told.
    level: Mutex<Option<Level>>,
    subscriptions: Subscriptions,
    parking: Arc<Parking>,
}

impl Clients {
    pub(crate) fn new(parking: &Arc<Parking>) -> Self {
        let (level, subscriptions) = (Mutex::default(), Subscriptions::default());
        Self { level, subscriptions, parking: Arc::clone(parking) }
    }
}

impl Standing {
    pub(crate) fn new(session: Arc<AgentSession>, clients: Arc<Clients>) -> Self {
        Self { session, clients }
    }
}

/// Starts a request of a client that `standing` stands for. The request is not too long.
pub(crate) async fn start(
    standing: &Standing,
    client: &Client<'_>,
    request: CallRequest<'_>,
) -> Result<Started, Refusal> {
    let id = request.id;
    if let Some(answer) = undeclared_task(&standing.session, client, &request) {
        return Ok(Started::Answer(answer, Some(Rejection::InvalidRequest)));
    }
    let state = request.request_state.filter(|_| may_ask(request.method));
    let started = match (request.method, state) {
        (_, Some(state)) => go_on(standing, state, &request).await,
        (method::DISCOVER, None) => Ok(Started::Call(discover::start(standing, &request))),
        (method::LISTEN, None) => listen::start(standing, &request).map(Started::Call),
        _ => pass(standing, client, request).map(Started::Call),
    };
    started.map_err(|refusal| Refusal { id: Some(id.to_owned()), ..refusal })
}

/// Continues a call that waits for this request.
async fn go_on(
    standing: &Standing,
    state: &str,
    request: &CallRequest<'_>,
) -> Result<Started, Refusal> {
    Ok(match resume(standing, state, request).await? {
        Resumed::Goes(going) => Started::Stream(ModernStream::of(going)),
        Resumed::Answer(answer) => {
            let shown = Shape::passed(request, None).show(&answer, false);
            let (answer, rejection) = shown.unwrap_or((answer, None));
            Started::Answer(answer, rejection)
        }
    })
}

/// Sends a request on. A server of an older protocol receives it without what it says of itself
/// (`link/pending.rs`), one of the same protocol as it is.
fn pass(
    standing: &Standing,
    client: &Client<'_>,
    request: CallRequest<'_>,
) -> Result<ModernCall, Refusal> {
    let session = &standing.session;
    let number = session.next_number();
    let buffer = Arc::new(EventBuffer::expecting(number, 1));
    let id = number.to_string();
    let level = client.claims.log_level.as_deref().and_then(Level::parse);
    let told = level.and_then(|level| tell_level(standing, level));
    let (asking, rounds) = if may_ask(request.method) {
        let (legs, rounds) = legs(client.parameters.clone());
        (Some(Asking { legs, bound: bound(session, &request)? }), Some(rounds))
    } else {
        (None, None)
    };
    let shape = Shape::passed(&request, level);
    let work = session.start_checked(CallRequest { id: &id, rounds, ..request }, &buffer)?;
    let work: Work = match told {
        Some(told) => Box::pin(async move {
            told.await;
            work.await;
        }),
        None => work,
    };
    let calling = Calling { shape, interest: Interest::answer(standing, id), asking };
    Ok(ModernCall::new(session.call(buffer, work), calling))
}

/// Tells the servers which log messages are wanted, if they were told otherwise before.
fn tell_level(standing: &Standing, level: Level) -> Option<Work> {
    let before = standing.clients.level.lock().replace(level);
    if before == Some(level) {
        return None;
    }
    let number = standing.session.next_number();
    let params = format!(r#"{{"level":"{}"}}"#, level.as_str());
    let request = OwnedRequest::write(number, method::LOGGING_SET_LEVEL, Some(&params));
    let buffer = Arc::new(EventBuffer::expecting(number, 1));
    // A server that keeps no log answers with an error, which changes nothing.
    standing.session.start_own(&request, &buffer).ok()
}

/// How a conversation with a server of an older protocol is opened on a client's behalf.
pub(crate) fn opening(claims: &Claims<'_>) -> Bytes {
    let info = claims.client_info.filter(|info| {
        ["name", "version"].iter().all(|key| {
            peek(info, &[*key]).ok().flatten().is_some_and(|value| value.starts_with('"'))
        })
    });
    let info = info.unwrap_or(OURS);
    Bytes::from(format!(
        r#"{{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{info}}}"#,
        claims.capabilities
    ))
}

/// What we call ourselves where the client calls itself nothing.
const OURS: &str = concat!(r#"{"name":"toolgate","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);
