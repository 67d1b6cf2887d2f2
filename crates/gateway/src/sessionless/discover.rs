//! `server/discover`: the capabilities of a server, without a handshake.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;
use toolgate_admission::answer_kind::AnswerKind;
use toolgate_admission::call_request::CallRequest;
use toolgate_json::{entries, members, text};
use toolgate_mcp::sessionless::{VERSION, key};
use toolgate_mcp::{
    Incoming, Limits, Message, Payload, Request, Response, code, parse_server, write,
};
use toolgate_upstream::event_buffer::EventBuffer;
use toolgate_upstream::link::HandshakeOutcome;
use toolgate_upstream::rewrite::with_error;

use super::call::{CallState, CancelOnDrop, SessionlessCall};
use super::{ImplicitSession, Shape};
use crate::aggregate;
use crate::downstream::agent::AgentSession;
use crate::downstream::endpoint::Endpoint;

/// Capabilities of older protocols whose names have another meaning in 2026-07-28.
const NOT_SHOWN: [&str; 1] = ["tasks"];

/// Starts answering.
pub(super) fn start(implicit: &ImplicitSession, request: &CallRequest<'_>) -> SessionlessCall {
    let session = &implicit.session;
    let since = Instant::now();
    let buffer = Arc::new(EventBuffer::expecting(session.next_number(), 1));
    let work = {
        let (session, buffer) = (Arc::clone(session), Arc::clone(&buffer));
        let owned = request.to_owned();
        async move {
            let request = owned.request();
            let id = request.id;
            let welcome = match session.endpoint() {
                Endpoint::All | Endpoint::Sessions => Ok(welcome_of_all(&session, &request).await),
                Endpoint::Server(_) => welcome_of_one(&session, id, since).await,
            };
            // A sessionless server answers itself.
            let links = session.links();
            let link =
                links.first().filter(|link| session.endpoint().is_one() && link.is_sessionless());
            if let (Ok(_), Some(_)) = (&welcome, link)
                && let Ok(input) = session.start_own(&owned, &buffer)
            {
                return input.await;
            }
            let answer = match welcome {
                Ok(welcome) => discovered(&welcome, id),
                Err(answer) => answer,
            };
            buffer.answer(answer, None);
        }
    };
    let call = session.call(buffer, Box::pin(work));
    let cancel = CancelOnDrop::ours(implicit);
    SessionlessCall::new(call, CallState { shape: Shape::Ours, cancel, input: None })
}

/// The combined answer of all servers to `initialize`.
async fn welcome_of_all(session: &Arc<AgentSession>, request: &Request<'_>) -> Bytes {
    let links = session.links();
    let now = Instant::now();
    for link in links.iter() {
        link.server().list_cache.wait_before_welcome(now).await;
    }
    let request = Request { params: None, ..request.clone() };
    aggregate::welcome(&links, &request).1
}

/// The answer of one server to `initialize`.
async fn welcome_of_one(
    session: &Arc<AgentSession>,
    id: &str,
    since: Instant,
) -> Result<Bytes, Bytes> {
    let links = session.links();
    let Some(link) = links.first() else {
        let why = "this server is no longer configured";
        return Err(write::error(Some(id), code::INTERNAL_ERROR, why, None));
    };
    match link.opened(since).await {
        Ok(HandshakeOutcome::Accepted(welcome)) => Ok(welcome),
        Ok(HandshakeOutcome::Rejected(refusal)) => {
            Err(match response(&refusal).map(|it| it.payload) {
                Some(Payload::Error(error)) => with_error(id, error),
                _ => no_handshake(id),
            })
        }
        Err(failure) => Err(failure.answer(link.server().name(), id, AnswerKind::Other, None)),
    }
}

/// Translates the answer to `initialize` to an answer to `server/discover`.
fn discovered(welcome: &Bytes, id: &str) -> Bytes {
    let Some(Payload::Result(result)) = response(welcome).map(|it| it.payload) else {
        return no_handshake(id);
    };
    let parts = members(result, ["capabilities", "instructions", "serverInfo"]).unwrap_or_default();
    let [capabilities, instructions, info] = parts;
    let instructions = instructions.filter(|raw| raw.starts_with('"'));
    let instructions =
        instructions.map(|raw| format!(r#","instructions":{raw}"#)).unwrap_or_default();
    let meta = info.map(|info| format!(r#","_meta":{{"{}":{info}}}"#, key::SERVER_INFO));
    let result = format!(
        r#"{{"resultType":"complete","supportedVersions":["{VERSION}"],"capabilities":{}{instructions},"ttlMs":0,"cacheScope":"private"{}}}"#,
        shown(capabilities.unwrap_or("{}")),
        meta.unwrap_or_default(),
    );
    write::result(id, &result)
}

fn shown(capabilities: &str) -> String {
    let is_shown = |raw: &str| text(raw).is_some_and(|key| !NOT_SHOWN.contains(&key.as_ref()));
    let all = entries(capabilities).ok().flatten().unwrap_or_default();
    let all = all.into_iter().filter(|(key, _)| is_shown(key));
    let all: Vec<_> = all.map(|(key, value)| format!("{key}:{value}")).collect();
    format!("{{{}}}", all.join(","))
}

fn response(body: &Bytes) -> Option<Response<'_>> {
    match parse_server(body, &Limits::default()) {
        Ok(Incoming::One(Message::Response(response))) => Some(response),
        _ => None,
    }
}

fn no_handshake(id: &str) -> Bytes {
    let why = "the server sent an invalid answer to the handshake";
    write::error(Some(id), code::INTERNAL_ERROR, why, None)
}
