//! The agents' listener: MCP over streamable HTTP, protocols 2024-11-05 to 2025-11-25 with their
//! sessions, and 2026-07-28 without (`agents/modern.rs`); each request says which it is of.
//!
//! This is where HTTP becomes calls of the gateway and its outcomes become responses; statuses,
//! headers and content types are known here and nowhere deeper. A request is answered as one JSON
//! body if its answer comes first and soon, else as a stream of events that can be resumed.
//!
//! Invariant: no header of the agent reaches the gateway but the session id, the protocol version
//! and the last event id, and none at all reaches a server.
//!
//! Start at `Inner::handle`. `agents/head.rs` judges heads, `agents/stream.rs` writes events.

use std::convert::Infallible;
use std::future::{Future, ready};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::{FutureExt as _, StreamExt as _};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::Service;
use toolgate_gateway::outlet::{Begun, First};
use toolgate_gateway::{
    AgentSession, Endpoint, EventId, Gateway, Grant, Listener, NotOpened, Peer, Stranger, refused,
};
use toolgate_mcp::{
    Incoming as Body, Limits, Message, Pieces, Refusal, Version, code, method, parse_agent,
};

use crate::body::{NotRead, Reply, read_within};
use crate::guard::Guard;
use crate::room::{Room, SMALL};

mod head;
mod modern;
mod reply;
mod stream;

use self::head::Head;
use self::reply::{json, problem, with_session};

/// Serves agents.
#[derive(Clone)]
pub struct Agents(Arc<Inner>);

struct Inner {
    gateway: Arc<Gateway>,
    rules: ArcSwap<Rules>,
    ready: Arc<AtomicBool>,
    room: Arc<Room>,
    /// Answers that agents have not read yet.
    unread: Arc<Room>,
}

/// Who may come and how much they may send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Who may reach the listener.
    pub guard: Guard,
    /// What an agent may send.
    pub limits: AgentLimits,
}

/// What an agent may send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentLimits {
    /// The largest request body.
    pub body: usize,
    /// How long it may take to arrive, in all.
    pub body_read: Duration,
    /// How deep its JSON may be nested.
    pub depth: usize,
    /// The largest answer of a server.
    pub result: usize,
}

/// Where a request goes, and whose it is.
struct Door {
    endpoint: Endpoint,
    caller: Arc<Grant>,
}

// === impl Agents ===

impl Agents {
    /// A listener's service; `ready` says whether `/readyz` is to answer 200.
    pub fn new(gateway: Arc<Gateway>, rules: Rules, ready: Arc<AtomicBool>) -> Self {
        let (rules, room, unread) = (ArcSwap::from_pointee(rules), Arc::default(), Arc::default());
        Self(Arc::new(Inner { gateway, rules, ready, room, unread }))
    }

    /// Other rules from the next request on.
    pub fn set_rules(&self, rules: Rules) {
        self.0.rules.store(Arc::new(rules));
    }
}

impl Service<Request<Incoming>> for Agents {
    type Response = Response<Reply>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Reply>, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let inner = Arc::clone(&self.0);
        Box::pin(contained(async move { inner.handle(request).await }).map(Ok))
    }
}

/// A mistake ends one request and nothing else: not the connection that it came on either. No
/// `async fn`: that would hold the answering twice, and it is large.
fn contained(
    answering: impl Future<Output = Response<Reply>>,
) -> impl Future<Output = Response<Reply>> {
    AssertUnwindSafe(answering).catch_unwind().map(|answered| {
        answered.unwrap_or_else(|_| {
            tracing::error!("toolgate made a mistake; the request it was made in is given up");
            let why = "toolgate made a mistake, so nothing is known of this request; see its log";
            problem(StatusCode::INTERNAL_SERVER_ERROR, code::INTERNAL_ERROR, why)
        })
    })
}

// === impl Inner ===

impl Inner {
    async fn handle(&self, request: Request<Incoming>) -> Response<Reply> {
        let rules = self.rules.load_full();
        let peer = request.extensions().get().copied();
        if let Err(denied) = rules.guard.check(request.uri(), request.headers()) {
            self.refused(denied.stranger(), peer);
            return problem(StatusCode::FORBIDDEN, code::INVALID_REQUEST, &denied.to_string());
        }
        match request.uri().path() {
            "/healthz" => return reply::text(StatusCode::OK, "ok\n"),
            "/readyz" if self.ready.load(Ordering::Relaxed) => {
                return reply::text(StatusCode::OK, "ready\n");
            }
            "/readyz" => return reply::text(StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
            _ => {}
        }
        let Some(path) = request.uri().path().strip_prefix("/mcp") else {
            return reply::nothing_here();
        };
        let caller = match self.caller(request.headers()) {
            Ok(caller) => caller,
            Err(why) => {
                self.refused(why, peer);
                return reply::unauthorized();
            }
        };
        let Some(endpoint) = self.endpoint(path, &caller) else {
            return reply::nothing_here();
        };
        let to = Door { endpoint, caller };
        let response = match *request.method() {
            Method::POST => self.post(&to, request, &rules.limits).await,
            Method::GET | Method::DELETE if modern::is_named(request.headers()) => {
                reply::only_post()
            }
            Method::GET => self.get(&to, &request),
            Method::DELETE => self.delete(&to, &request),
            _ => reply::not_allowed(),
        };
        self.within_room(&to.caller.label, rules.limits.result, response)
    }

    /// The response, if there is room for it until the agent has read it. A stream for which there
    /// is none ends.
    fn within_room(
        &self,
        grant: &Arc<str>,
        largest: usize,
        response: Response<Reply>,
    ) -> Response<Reply> {
        let (parts, body) = response.into_parts();
        let body = match body {
            Reply::Whole(pieces) if pieces.len() <= SMALL => Reply::Whole(pieces),
            Reply::Whole(pieces) => {
                let Some(pieces) = self.unread.unread(grant, largest, pieces) else {
                    tracing::warn!(%grant, "the agent leaves too many answers unread; dropping one");
                    return reply::unread();
                };
                Reply::Whole(pieces.into_iter().collect())
            }
            Reply::Events(events) => {
                let (room, grant) = (Arc::clone(&self.unread), Arc::clone(grant));
                Reply::Events(Box::pin(events.scan((), move |(), event| {
                    if event.len() <= SMALL {
                        return ready(Some(event));
                    }
                    let event = room.unread(&grant, largest, [event]).and_then(|mut event| event.pop());
                    if event.is_none() {
                        tracing::warn!(%grant, "the agent leaves too many answers unread; ending its stream");
                    }
                    ready(event)
                })))
            }
            passing @ Reply::Passing(_) => passing,
        };
        Response::from_parts(parts, body)
    }

    /// Who calls, or why nobody may call like that.
    fn caller(&self, headers: &HeaderMap) -> Result<Arc<Grant>, Stranger> {
        let token = head::bearer(headers).map_err(|()| Stranger::BadToken)?;
        let why = if token.is_some() { Stranger::BadToken } else { Stranger::NoToken };
        self.gateway.admission().caller(token).ok_or(why)
    }

    fn refused(&self, why: Stranger, peer: Option<Peer>) {
        self.gateway.admission().strangers().refused(Listener::Mcp, why, peer);
    }

    /// What a path below `/mcp` leads to. What a grant may not reach is not there.
    fn endpoint(&self, path: &str, caller: &Grant) -> Option<Endpoint> {
        if path.is_empty() {
            return Some(Endpoint::All);
        }
        let name = path.strip_prefix('/')?;
        if name == "sessions" {
            return self.gateway.session_driver().map(|_| Endpoint::Sessions);
        }
        let server = self.gateway.server(name)?;
        caller.may_reach(server.name()).then(|| Endpoint::Server(server.name().to_owned()))
    }

    async fn post(
        &self,
        to: &Door,
        request: Request<Incoming>,
        limits: &AgentLimits,
    ) -> Response<Reply> {
        let (parts, body) = request.into_parts();
        let head = match Head::of_post(&parts.headers) {
            Ok(head) => head,
            Err(response) => return *response,
        };
        // It is held as long as the body is.
        let mut share = self.room.share(&to.caller.label, limits.body);
        let body = match read_within(body, limits.body, limits.body_read, &mut share).await {
            Ok(body) => body,
            Err(why) => return not_read(&why, limits.body),
        };
        let limits = Limits { depth: limits.depth, ..Limits::default() };
        let message = match parse_agent(&body, &limits) {
            Ok(message) => message,
            Err(refusal) => return json(StatusCode::BAD_REQUEST, refused(&refusal)),
        };
        if let Some(response) = self.modern(to, &parts.headers, &message).await {
            return response;
        }
        if let Err(response) = head.has_handshake() {
            return *response;
        }
        if let Body::One(Message::Request(request)) = &message
            && request.method == method::INITIALIZE
        {
            return self.open(to, request).await;
        }
        let session = match self.session(to, &head) {
            Ok(session) => session,
            Err(response) => return *response,
        };
        match message {
            Body::One(Message::Request(request)) => match session.request(&request) {
                Ok(call) => answer(&session, call).await,
                Err(refusal) => json(StatusCode::BAD_REQUEST, refused(&refusal)),
            },
            Body::One(Message::Notification(notification)) => {
                match session.notify(&notification).await {
                    Ok(()) => reply::accepted(),
                    Err(refusal) => json(StatusCode::BAD_REQUEST, refused(&refusal)),
                }
            }
            Body::One(Message::Response(response)) => {
                session.respond(&response).await;
                reply::accepted()
            }
            Body::Batch(members) => batch(&session, &members).await,
        }
    }

    async fn open(&self, to: &Door, request: &toolgate_mcp::Request<'_>) -> Response<Reply> {
        match self.gateway.open(&to.endpoint, request, &to.caller).await {
            Ok((session, answer)) => with_session(json(StatusCode::OK, answer), session.id()),
            Err(why) => not_opened(why),
        }
    }

    fn get(&self, to: &Door, request: &Request<Incoming>) -> Response<Reply> {
        let head = match Head::of_get(request.headers()) {
            Ok(head) => head,
            Err(response) => return *response,
        };
        let session = match self.session(to, &head) {
            Ok(session) => session,
            Err(response) => return *response,
        };
        let Some(last) = head.last_event_id else {
            return stream::reply(session.listen(), None);
        };
        let last = last.to_str().ok().and_then(|id| id.parse::<EventId>().ok());
        let attached = last.and_then(|id| session.resume(&id));
        match attached {
            Some(attached) => stream::reply(attached, None),
            None => problem(
                StatusCode::BAD_REQUEST,
                code::INVALID_REQUEST,
                "the stream of this Last-Event-ID is not known (any more); send the request again",
            ),
        }
    }

    fn delete(&self, to: &Door, request: &Request<Incoming>) -> Response<Reply> {
        let session = Head::of_delete(request.headers()).and_then(|head| self.session(to, &head));
        match session {
            Ok(session) => {
                self.gateway.end(&session);
                reply::text(StatusCode::OK, "")
            }
            Err(response) => *response,
        }
    }

    fn session(
        &self,
        to: &Door,
        head: &Head<'_>,
    ) -> Result<Arc<AgentSession>, Box<Response<Reply>>> {
        let Some(id) = head.session else {
            return Err(Box::new(problem(
                StatusCode::BAD_REQUEST,
                code::INVALID_REQUEST,
                "the Mcp-Session-Id header is missing; send `initialize` first and then the id \
                 that its answer carries",
            )));
        };
        self.gateway.session(&to.endpoint, id, &to.caller).ok_or_else(|| {
            Box::new(problem(
                StatusCode::NOT_FOUND,
                SESSION_NOT_FOUND,
                "no such agent session: it has ended, or it never was; send `initialize` again",
            ))
        })
    }
}

fn not_opened(why: NotOpened) -> Response<Reply> {
    match why {
        NotOpened::Answer(answer) => json(StatusCode::OK, answer),
        NotOpened::UnknownServer => reply::nothing_here(),
        NotOpened::TooMany(max) => {
            let why = format!(
                "there are {max} agent sessions already, which is the limit \
                 (`agent_sessions.max` in toolgate.yaml); end one or try again later"
            );
            problem(StatusCode::SERVICE_UNAVAILABLE, code::INTERNAL_ERROR, &why)
        }
        NotOpened::TooManyOfGrant(max) => {
            let why = format!(
                "your grant has {max} agent sessions already, which is the limit for one grant \
                 (`agent_sessions.per_grant` in toolgate.yaml); end one or try again later"
            );
            problem(StatusCode::TOO_MANY_REQUESTS, code::INTERNAL_ERROR, &why)
        }
        NotOpened::Stopping => reply::stopping(),
        NotOpened::NoIds => {
            let why = "no agent session id could be made; see the log of toolgate";
            problem(StatusCode::INTERNAL_SERVER_ERROR, code::INTERNAL_ERROR, why)
        }
    }
}

fn not_read(why: &NotRead, limit: usize) -> Response<Reply> {
    let (status, why) = match why {
        NotRead::TooLarge => (
            StatusCode::PAYLOAD_TOO_LARGE,
            format!(
                "the body is larger than {limit} bytes (`limits.body` in toolgate.yaml); nothing \
                 of it was used"
            ),
        ),
        NotRead::NoRoom => return reply::no_room(),
        NotRead::Stalled => (StatusCode::REQUEST_TIMEOUT, "the body stopped coming".to_owned()),
        NotRead::TooSlow => (
            StatusCode::REQUEST_TIMEOUT,
            "the body did not arrive in time (`limits.body_read` in toolgate.yaml); nothing of it \
             was used"
                .to_owned(),
        ),
        NotRead::Broken => (StatusCode::BAD_REQUEST, "the body broke off".to_owned()),
    };
    problem(status, code::INVALID_REQUEST, &why)
}

/// What clients know as "session not found".
const SESSION_NOT_FOUND: i32 = -32001;

async fn answer(session: &Arc<AgentSession>, mut call: toolgate_gateway::Call) -> Response<Reply> {
    match call.begun().await {
        Begun::All(First::Answer(answer, status)) => {
            json(StatusCode::from_u16(status).unwrap_or(StatusCode::OK), answer)
        }
        Begun::All(First::Stream) => stream::reply(session.stream(&call), session.version()),
        Begun::Passing(passage) => reply::passing(passage),
    }
}

async fn batch(
    session: &Arc<AgentSession>,
    members: &[Result<Message<'_>, Refusal>],
) -> Response<Reply> {
    if session.version() != Some(Version::V2025_03_26) {
        let why = "batches exist only in protocol 2025-03-26; send the messages one by one";
        return problem(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, why);
    }
    let opens = |member: &Result<Message<'_>, Refusal>| matches!(member, Ok(Message::Request(request)) if request.method == method::INITIALIZE);
    if members.iter().any(opens) {
        let why = "`initialize` must not be part of a batch";
        return problem(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, why);
    }
    match session.batch(members).await {
        Some(call) => stream::reply(session.stream(&call), session.version()),
        None => reply::accepted(),
    }
}

/// Shorthand for the reply of an empty body.
fn empty() -> Reply {
    Reply::Whole(Pieces::default())
}

/// Shorthand for the reply of a whole body.
fn whole(body: impl Into<Pieces>) -> Reply {
    Reply::Whole(body.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_mistake_is_answered() {
        let answered = contained(async { panic!("on purpose") }).await;
        assert_eq!(answered.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let answered = contained(async { reply::text(StatusCode::OK, "ok") }).await;
        assert_eq!(answered.status(), StatusCode::OK);
    }
}
