//! Clients of protocol 2026-07-28, which has no sessions, in front of servers that have.
//!
//! A request is put into the older protocol and sent over the agent session that stands for its
//! client (`gateway/standing.rs`); what comes back is put into the newer one again
//! (`modern/shape.rs`). What only the newer protocol has is answered here: `modern/discover.rs`,
//! `modern/listen.rs`.
//!
//! Invariant: every request has an id of its own towards the standing session, so that clients
//! which number alike never meet.
//! Invariant: whoever closes the stream of a request has cancelled it.
//!
//! Start at [`Gateway::modern`].

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use toolgate_mcp::modern::{Claims, to_legacy};
use toolgate_mcp::{Refusal, Request, code, entries, method, peek, text, write};

use crate::access::Grant;
use crate::agent::AgentSession;
use crate::call::Work;
use crate::endpoint::Endpoint;
use crate::gateway::{Gateway, NotOpened};
use crate::outlet::Outlet;

mod call;
mod discover;
mod level;
mod listen;
mod shape;

pub use call::{ModernCall, ModernStream};

use call::Interest;
use level::Level;
use listen::Subscriptions;
use shape::Shape;

/// What a client says of itself with every request.
#[derive(Debug, Clone, Copy)]
pub struct Client<'a> {
    /// In the body.
    pub claims: &'a Claims<'a>,
    /// In the header `Toolgate-Session`: which of its requests belong together.
    pub session: Option<&'a str>,
}

/// Why a request was not started.
#[derive(Debug)]
pub enum NotStarted {
    /// There is no agent session to stand for its client.
    NotOpened(NotOpened),
    /// It cannot be sent.
    Refused(Refusal),
}

/// What an agent session has that stands for such clients.
pub(crate) struct Standing {
    /// What the audit and policies know it by.
    pub(crate) known_as: Arc<str>,
    /// The log level that servers were last told.
    level: Mutex<Option<Level>>,
    subscriptions: Subscriptions,
}

impl Standing {
    pub(crate) fn new(known_as: Arc<str>) -> Self {
        Self { known_as, level: Mutex::default(), subscriptions: Subscriptions::default() }
    }
}

impl Gateway {
    /// Starts a request; what comes of it is read from the returned call.
    pub fn modern(
        &self,
        endpoint: &Endpoint,
        caller: &Arc<Grant>,
        client: &Client<'_>,
        request: &Request<'_>,
    ) -> Result<ModernCall, NotStarted> {
        let session =
            self.standing_session(endpoint, caller, client).map_err(NotStarted::NotOpened)?;
        let started = match request.method.as_ref() {
            method::DISCOVER => Ok(discover::start(&session, request)),
            method::LISTEN => listen::start(&session, request),
            _ => pass(&session, client.claims, request),
        };
        started.map_err(|refusal| {
            NotStarted::Refused(Refusal { id: Some(request.id.to_owned()), ..refusal })
        })
    }
}

/// Sends a request on, in the older protocol.
fn pass(
    session: &Arc<AgentSession>,
    claims: &Claims<'_>,
    request: &Request<'_>,
) -> Result<ModernCall, Refusal> {
    let number = session.next_number();
    let outlet = Arc::new(Outlet::expecting(number, 1));
    let id = number.to_string();
    let level = claims.log_level.as_deref().and_then(Level::parse);
    let told = level.and_then(|level| tell_level(session, level));
    let work = session.start_own(&to_legacy(request, &id)?, &outlet)?;
    let work: Work = match told {
        Some(told) => Box::pin(async move {
            told.await;
            work.await;
        }),
        None => work,
    };
    let shape = Shape::passed(request, level);
    let call = session.call(outlet, work);
    Ok(ModernCall::new(call, shape, Interest::answer(session, id)))
}

/// Tells the servers which log messages are wanted, if they were told otherwise before.
fn tell_level(session: &Arc<AgentSession>, level: Level) -> Option<Work> {
    let before = session.standing()?.level.lock().replace(level);
    if before == Some(level) {
        return None;
    }
    let number = session.next_number();
    let params = format!(r#"{{"level":"{}"}}"#, level.as_str());
    let request = write::request(number, method::LOGGING_SET_LEVEL, Some(&params));
    let outlet = Arc::new(Outlet::expecting(number, 1));
    // A server that keeps no log says so; nothing hangs on it.
    session.start_own(&String::from_utf8_lossy(&request), &outlet).ok()
}

/// How a conversation with a server of an older protocol is opened on a client's behalf.
pub(crate) fn opening(claims: &Claims<'_>) -> Bytes {
    let is_asked = |raw: &str| text(raw).is_some_and(|key| ASKED.contains(&key.as_ref()));
    let capabilities = entries(claims.capabilities).ok().flatten().unwrap_or_default();
    let capabilities = capabilities.into_iter().filter(|(key, _)| !is_asked(key));
    let capabilities: Vec<_> = capabilities.map(|(key, value)| format!("{key}:{value}")).collect();
    let info = claims.client_info.filter(|info| {
        ["name", "version"].iter().all(|key| {
            peek(info, &[*key]).ok().flatten().is_some_and(|value| value.starts_with('"'))
        })
    });
    let info = info.unwrap_or(OURS);
    Bytes::from(format!(
        r#"{{"protocolVersion":"2025-11-25","capabilities":{{{}}},"clientInfo":{info}}}"#,
        capabilities.join(",")
    ))
}

/// What servers could ask a client with these capabilities, which it cannot be asked here.
const ASKED: [&str; 3] = ["sampling", "elicitation", "roots"];

/// What we call ourselves where the client calls itself nothing.
const OURS: &str = concat!(r#"{"name":"toolgate","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);

/// The answer to a question of a server that no client can be asked; none if one can.
pub(crate) fn answer_at_once(
    session: &AgentSession,
    request: &Request<'_>,
    _in_call: bool,
) -> Option<Bytes> {
    session.standing()?;
    if request.method == method::PING {
        return Some(write::result(request.id, "{}"));
    }
    let why = "the client speaks protocol 2026-07-28 and cannot be asked";
    Some(write::error(Some(request.id), code::METHOD_NOT_FOUND, why, None))
}
