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

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use toolgate_admission::clearance::Heads;
use toolgate_admission::multi_round::{Newer, Steps, legs};
use toolgate_json::peek;
use toolgate_mcp::modern::Claims;
use toolgate_mcp::{Refusal, Request, method, write};
use toolgate_upstream::event_buffer::{EventBuffer, Rejection};
use toolgate_upstream::log_level::Level;
use toolgate_upstream::rewrite::rewrite;
use toolgate_upstream::work::Work;

use crate::downstream::agent::{AgentSession, ClientState};

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

/// What an agent session has that stands for such clients.
pub(crate) struct Standing {
    /// What the audit and policies know it by.
    known_as: Arc<str>,
    /// The log level that servers were last told.
    level: Mutex<Option<Level>>,
    subscriptions: Subscriptions,
    parking: Arc<Parking>,
    /// The other ends of calls that are about to be sent, by the numbers of their buffers.
    steps: Mutex<HashMap<u64, (Steps, Newer)>>,
}

impl Standing {
    pub(crate) fn new(known_as: Arc<str>, parking: Arc<Parking>) -> Self {
        Self {
            known_as,
            level: Mutex::default(),
            subscriptions: Subscriptions::default(),
            parking,
            steps: Mutex::default(),
        }
    }

    /// What belongs to `session` if it stands for such clients.
    fn of(session: &AgentSession) -> Option<&Self> {
        let state: &dyn Any = session.standing()?;
        state.downcast_ref()
    }
}

impl ClientState for Standing {
    fn known_as(&self) -> &Arc<str> {
        &self.known_as
    }

    fn take_steps(&self, buffer: u64) -> Option<(Steps, Newer)> {
        self.steps.lock().remove(&buffer)
    }

    fn hang_up(&self, session: u64) {
        self.parking.clear(session);
    }
}

/// Starts a request of a client that `session` stands for.
pub(crate) async fn start(
    session: &Arc<AgentSession>,
    client: &Client<'_>,
    request: &Request<'_>,
) -> Result<Started, Refusal> {
    if let Some(answer) = undeclared_task(session, client, request) {
        return Ok(Started::Answer(answer, Some(Rejection::InvalidRequest)));
    }
    let state = match request.params {
        Some(params) if may_ask(&request.method) => peek(params, &["requestState"]),
        _ => Ok(None),
    };
    let started = match (request.method.as_ref(), state) {
        (_, Err(error)) => Err(error.into()),
        (_, Ok(Some(state))) => go_on(session, state, request).await,
        (method::DISCOVER, _) => Ok(Started::Call(discover::start(session, request))),
        (method::LISTEN, _) => listen::start(session, request).map(Started::Call),
        _ => pass(session, client, request).map(Started::Call),
    };
    started.map_err(|refusal| Refusal { id: Some(request.id.to_owned()), ..refusal })
}

/// Goes on with a call that waits for this request.
async fn go_on(
    session: &Arc<AgentSession>,
    state: &str,
    request: &Request<'_>,
) -> Result<Started, Refusal> {
    Ok(match resume(session, state, request).await? {
        Resumed::Goes(going) => Started::Stream(ModernStream::of(going)),
        Resumed::Answer(answer) => {
            let shown = Shape::passed(request, None).show(&answer, false);
            let (answer, rejection) = shown.unwrap_or((answer, None));
            Started::Answer(answer, rejection)
        }
    })
}

/// Sends a request on. A server of an older protocol is given it without what it says of itself
/// (`link/pending.rs`), one of the same protocol as it is.
fn pass(
    session: &Arc<AgentSession>,
    client: &Client<'_>,
    request: &Request<'_>,
) -> Result<ModernCall, Refusal> {
    let number = session.next_number();
    let buffer = Arc::new(EventBuffer::expecting(number, 1));
    let id = number.to_string();
    let level = client.claims.log_level.as_deref().and_then(Level::parse);
    let told = level.and_then(|level| tell_level(session, level));
    let (asking, steps) = if may_ask(&request.method) {
        let (legs, steps) = legs(client.parameters.clone());
        (Some(Asking { legs, bound: bound(session, request)? }), Some(steps))
    } else {
        (None, None)
    };
    let standing = Standing::of(session);
    if let (Some(standing), Some(steps)) = (standing, steps) {
        standing.steps.lock().insert(number, steps);
    }
    let renamed = rewrite(request.raw, &[(request.id, &id)]);
    let work = renamed.and_then(|raw| session.start_own(&String::from_utf8_lossy(&raw), &buffer));
    // If nobody has taken them, the call goes nowhere.
    drop(standing.and_then(|standing| standing.take_steps(number)));
    let work = work?;
    let work: Work = match told {
        Some(told) => Box::pin(async move {
            told.await;
            work.await;
        }),
        None => work,
    };
    let calling = Calling {
        shape: Shape::passed(request, level),
        interest: Interest::answer(session, id),
        asking,
    };
    Ok(ModernCall::new(session.call(buffer, work), calling))
}

/// Tells the servers which log messages are wanted, if they were told otherwise before.
fn tell_level(session: &Arc<AgentSession>, level: Level) -> Option<Work> {
    let before = Standing::of(session)?.level.lock().replace(level);
    if before == Some(level) {
        return None;
    }
    let number = session.next_number();
    let params = format!(r#"{{"level":"{}"}}"#, level.as_str());
    let request = write::request(number, method::LOGGING_SET_LEVEL, Some(&params));
    let buffer = Arc::new(EventBuffer::expecting(number, 1));
    // A server that keeps no log says so; nothing hangs on it.
    session.start_own(&String::from_utf8_lossy(&request), &buffer).ok()
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
