//! Clients of protocol 2026-07-28, which has no sessions, with servers of both eras.
//!
//! A request is sent over the implicit agent session of its client (`gateway/implicit_sessions.rs`);
//! responses of sessionful servers are translated (`sessionless/shape.rs`). `server/discover` and
//! `subscriptions/listen` are answered here (`sessionless/discover.rs`, `sessionless/listen.rs`). If a
//! server requires input, the client's request ends with `input_required`
//! (`sessionless/input_requests.rs`); the call is parked until the client continues it
//! (`sessionless/parked_calls.rs`).
//!
//! Invariant: every request has a unique id towards the implicit session, so that clients with equal
//! ids do not collide.
//! Invariant: closing the stream of a request cancels it.
//!
//! Start at [`start`].

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use toolgate_admission::call_request::CallRequest;
use toolgate_admission::clearance::Heads;
use toolgate_admission::contained::Work;
use toolgate_admission::multi_round::multi_round;
use toolgate_json::peek;
use toolgate_mcp::sessionless::Claims;
use toolgate_mcp::{OwnedRequest, Refusal, method};
use toolgate_upstream::event_buffer::EventBuffer;
use toolgate_upstream::event_buffer::Rejection;
use toolgate_upstream::log_level::Level;

use crate::downstream::agent::AgentSession;

mod bound;
mod call;
mod discover;
mod input_requests;
mod listen;
mod parked_calls;
mod shape;
mod undeclared;

pub use call::{SessionlessCall, SessionlessStream};
pub(crate) use parked_calls::ParkedCalls;

use bound::bound;
use call::{CallState, CancelOnDrop, InputRounds};
use input_requests::may_require_input;
use listen::Subscriptions;
use parked_calls::{Resumed, resume};
use shape::Shape;
use undeclared::undeclared_task;

/// What a client sends with every request.
#[derive(Debug, Clone, Copy)]
pub struct Client<'a> {
    /// The claims in the body.
    pub claims: &'a Claims<'a>,
    /// The header `Toolgate-Session`, which groups requests.
    pub session: Option<&'a str>,
    /// Its headers `Mcp-Param-*`, which repeat arguments; `None` for a transport without headers.
    pub parameters: Option<&'a Heads>,
}

/// A request that was started.
pub enum Started {
    /// A running call.
    Call(SessionlessCall),
    /// The continuation of a parked call.
    Stream(SessionlessStream),
    /// The answer, and whether it rejects the request itself.
    Answer(Bytes, Option<Rejection>),
}

/// An implicit agent session and the state of its clients.
#[derive(Clone)]
pub(crate) struct ImplicitSession {
    session: Arc<AgentSession>,
    clients: Arc<Clients>,
}

/// The state of the clients of one implicit session.
pub(crate) struct Clients {
    /// The log level that servers last received.
    level: Mutex<Option<Level>>,
    subscriptions: Subscriptions,
    parked_calls: Arc<ParkedCalls>,
}

impl Clients {
    pub(crate) fn new(parked_calls: &Arc<ParkedCalls>) -> Self {
        let (level, subscriptions) = (Mutex::default(), Subscriptions::default());
        Self { level, subscriptions, parked_calls: Arc::clone(parked_calls) }
    }
}

impl ImplicitSession {
    pub(crate) fn new(session: Arc<AgentSession>, clients: Arc<Clients>) -> Self {
        Self { session, clients }
    }
}

/// Starts a request of a client of `implicit`. Its length is within the limits.
pub(crate) async fn start(
    implicit: &ImplicitSession,
    client: &Client<'_>,
    request: CallRequest<'_>,
) -> Result<Started, Refusal> {
    let id = request.id;
    if let Some(answer) = undeclared_task(&implicit.session, client, &request) {
        return Ok(Started::Answer(answer, Some(Rejection::InvalidRequest)));
    }
    let state = request.request_state.filter(|_| may_require_input(request.method));
    let started = match (request.method, state) {
        (_, Some(state)) => continue_call(implicit, state, &request).await,
        (method::DISCOVER, None) => Ok(Started::Call(discover::start(implicit, &request))),
        (method::LISTEN, None) => listen::start(implicit, &request).map(Started::Call),
        _ => pass(implicit, client, request).map(Started::Call),
    };
    started.map_err(|refusal| Refusal { id: Some(id.to_owned()), ..refusal })
}

/// Continues a call that waits for this request.
async fn continue_call(
    implicit: &ImplicitSession,
    state: &str,
    request: &CallRequest<'_>,
) -> Result<Started, Refusal> {
    Ok(match resume(implicit, state, request).await? {
        Resumed::Continues(call) => Started::Stream(SessionlessStream::of(call)),
        Resumed::Answer(answer) => {
            let shown = Shape::passed(request, None).show(&answer, false);
            let (answer, rejection) = shown.unwrap_or((answer, None));
            Started::Answer(answer, rejection)
        }
    })
}

/// Forwards a request. A sessionful server receives it without the client's claims
/// (`link/pending.rs`), a sessionless one unchanged.
fn pass(
    implicit: &ImplicitSession,
    client: &Client<'_>,
    request: CallRequest<'_>,
) -> Result<SessionlessCall, Refusal> {
    let session = &implicit.session;
    let number = session.next_number();
    let buffer = Arc::new(EventBuffer::expecting(number, 1));
    let id = number.to_string();
    let level = client.claims.log_level.as_deref().and_then(Level::parse);
    let sent = level.and_then(|level| send_level(implicit, level));
    let (input, rounds) = if may_require_input(request.method) {
        let (client, rounds) = multi_round(client.parameters.cloned());
        (Some(InputRounds { rounds: client, bound: bound(session, &request)? }), Some(rounds))
    } else {
        (None, None)
    };
    let shape = Shape::passed(&request, level);
    let work = session.start_checked(CallRequest { id: &id, rounds, ..request }, &buffer)?;
    let work: Work = match sent {
        Some(sent) => Box::pin(async move {
            sent.await;
            work.await;
        }),
        None => work,
    };
    let state = CallState { shape, cancel: CancelOnDrop::answer(implicit, id), input };
    Ok(SessionlessCall::new(session.call(buffer, work), state))
}

/// Sends the log level to the servers, if it has changed.
fn send_level(implicit: &ImplicitSession, level: Level) -> Option<Work> {
    let before = implicit.clients.level.lock().replace(level);
    if before == Some(level) {
        return None;
    }
    let number = implicit.session.next_number();
    let params = format!(r#"{{"level":"{}"}}"#, level.as_str());
    let request = OwnedRequest::write(number, method::LOGGING_SET_LEVEL, Some(&params));
    let buffer = Arc::new(EventBuffer::expecting(number, 1));
    // A server without logging answers with an error, which is ignored.
    implicit.session.start_own(&request, &buffer).ok()
}

/// The `params` of `initialize` that sessionful servers receive for a client.
pub(crate) fn opening(claims: &Claims<'_>) -> Bytes {
    let info = claims.client_info.filter(|info| {
        ["name", "version"].iter().all(|key| {
            peek(info, &[*key]).ok().flatten().is_some_and(|value| value.starts_with('"'))
        })
    });
    let info = info.unwrap_or(OWN_INFO);
    Bytes::from(format!(
        r#"{{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{info}}}"#,
        claims.capabilities
    ))
}

/// The `clientInfo` for clients that send none.
const OWN_INFO: &str =
    concat!(r#"{"name":"toolgate","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);
