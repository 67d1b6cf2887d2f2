//! The agents' listener: MCP over streamable HTTP, sessionful (2024-11-05 to 2025-11-25) and
//! sessionless (2026-07-28, `agents/sessionless.rs`); each request states its protocol.
//!
//! HTTP requests become calls of the gateway here, and its outcomes become responses; statuses,
//! headers and content types are known only here. A request is answered as one JSON body if its
//! answer comes first and soon, else as a stream of events that can be resumed.
//!
//! Invariant: of an agent's headers only the session id, the protocol version and the last event id
//! reach the gateway, and none reaches a server.
//!
//! Start at `Inner::handle`. `agents/head.rs` checks heads, `agents/stream.rs` writes events.

use std::convert::Infallible;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::FutureExt as _;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::Service;
use toolgate_gateway::event_buffer::{Begun, First};
use toolgate_gateway::{
    AgentSession, AuthFailureReason, Endpoint, EventId, Gateway, Grant, Listener, Peer, refused,
};
use toolgate_mcp::{
    Incoming as Body, Limits, Message, Pieces, Refusal, Version, code, method, parse_agent,
};

use crate::body::{ResponseBody, read_within};
use crate::guard::Guard;
use crate::memory_budget::MemoryBudget;

mod head;
mod oauth;
mod reply;
mod sessionless;
mod stream;
mod unread;

use self::head::Head;
use self::reply::{json, problem, with_session};

/// Serves agents.
#[derive(Clone)]
pub struct Agents(Arc<Inner>);

struct Inner {
    gateway: Arc<Gateway>,
    rules: ArcSwap<Rules>,
    ready: Arc<AtomicBool>,
    budget: Arc<MemoryBudget>,
    /// Answers that agents have not read yet.
    unread: Arc<MemoryBudget>,
}

/// Who may connect, and the limits of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Who may reach the listener.
    pub guard: Guard,
    /// The limits of an agent's requests.
    pub limits: AgentLimits,
}

/// The limits of an agent's requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentLimits {
    /// The largest request body.
    pub body: usize,
    /// How long it may take to arrive, in total.
    pub body_read: Duration,
    /// How deep its JSON may be nested.
    pub depth: usize,
    /// The largest answer of a server.
    pub result: usize,
}

/// The endpoint of a request, and its grant.
struct Target {
    endpoint: Endpoint,
    caller: Arc<Grant>,
}

// === impl Agents ===

impl Agents {
    /// The service of a listener; `ready` decides the answer of `/readyz`.
    pub fn new(gateway: Arc<Gateway>, rules: Rules, ready: Arc<AtomicBool>) -> Self {
        let (rules, budget, unread) =
            (ArcSwap::from_pointee(rules), Arc::default(), Arc::default());
        Self(Arc::new(Inner { gateway, rules, ready, budget, unread }))
    }

    /// Replaces the rules from the next request on.
    pub fn set_rules(&self, rules: Rules) {
        self.0.rules.store(Arc::new(rules));
    }
}

impl Service<Request<Incoming>> for Agents {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let inner = Arc::clone(&self.0);
        Box::pin(contained(async move { inner.handle(request).await }).map(Ok))
    }
}

/// Contains a panic to one request; its connection continues. Not an `async fn`, which would hold
/// the large future twice.
fn contained(
    answering: impl Future<Output = Response<ResponseBody>>,
) -> impl Future<Output = Response<ResponseBody>> {
    AssertUnwindSafe(answering).catch_unwind().map(|answered| {
        answered.unwrap_or_else(|_| {
            tracing::error!("panic while handling a request; request aborted (please report this)");
            let why =
                "internal error: the effect of this request is unknown; see the log of toolgate";
            problem(StatusCode::INTERNAL_SERVER_ERROR, code::INTERNAL_ERROR, why)
        })
    })
}

// === impl Inner ===

impl Inner {
    async fn handle(&self, request: Request<Incoming>) -> Response<ResponseBody> {
        let rules = self.rules.load_full();
        let peer = request.extensions().get().copied();
        if let Err(denied) = rules.guard.check(request.uri(), request.headers()) {
            if let Some(why) = denied.auth_failure() {
                self.refused(why, peer);
            }
            return problem(denied.status(), code::INVALID_REQUEST, &denied.to_string());
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
            if oauth::is_path(request.uri().path()) {
                return oauth::not_supported();
            }
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
        let to = Target { endpoint, caller };
        let label = Arc::clone(&to.caller.label);
        let response = match *request.method() {
            Method::POST => self.post(to, request, &rules.limits).await,
            Method::GET | Method::DELETE if sessionless::is_named(request.headers()) => {
                reply::only_post()
            }
            Method::GET => self.get(&to, &request),
            Method::DELETE => self.delete(&to, &request),
            _ => reply::not_allowed(),
        };
        self.within_budget(&label, rules.limits.result, response)
    }

    /// The grant of a request, or why it is rejected.
    fn caller(&self, headers: &HeaderMap) -> Result<Arc<Grant>, AuthFailureReason> {
        let token = head::bearer(headers).map_err(|()| AuthFailureReason::BadToken)?;
        let why =
            if token.is_some() { AuthFailureReason::BadToken } else { AuthFailureReason::NoToken };
        self.gateway.admission().caller(token).ok_or(why)
    }

    fn refused(&self, why: AuthFailureReason, peer: Option<Peer>) {
        self.gateway.admission().auth_failures().refused(Listener::Mcp, why, peer);
    }

    /// The endpoint of a path below `/mcp`. A server that a grant may not reach does not exist for
    /// it.
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
        to: Target,
        request: Request<Incoming>,
        limits: &AgentLimits,
    ) -> Response<ResponseBody> {
        let (parts, body) = request.into_parts();
        let head = match Head::of_post(&parts.headers) {
            Ok(head) => head,
            Err(response) => return *response,
        };
        // The reservation is held as long as the body.
        let mut reservation = self.budget.reserve_body(&to.caller.label, limits.body);
        let body = match read_within(body, limits.body, limits.body_read, &mut reservation).await {
            Ok(body) => body,
            Err(why) => return reply::body_error(&why, limits.body),
        };
        // The token may have been revoked or replaced while the body arrived.
        let caller = match self.caller(&parts.headers) {
            Ok(caller) => caller,
            Err(why) => {
                self.refused(why, parts.extensions.get().copied());
                return reply::unauthorized();
            }
        };
        let to = &Target { caller, ..to };
        let limits = Limits { depth: limits.depth, ..Limits::default() };
        let message = match parse_agent(&body, &limits) {
            Ok(message) => message,
            Err(refusal) => return json(StatusCode::BAD_REQUEST, refused(&refusal)),
        };
        if let Some(response) = self.sessionless(to, &parts.headers, &message).await {
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

    async fn open(
        &self,
        to: &Target,
        request: &toolgate_mcp::Request<'_>,
    ) -> Response<ResponseBody> {
        match self.gateway.open(&to.endpoint, request, &to.caller).await {
            Ok((session, answer)) => with_session(json(StatusCode::OK, answer), session.id()),
            Err(why) => reply::not_opened(why),
        }
    }

    fn get(&self, to: &Target, request: &Request<Incoming>) -> Response<ResponseBody> {
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
                "the stream of this Last-Event-ID is unknown or expired; send the request again",
            ),
        }
    }

    fn delete(&self, to: &Target, request: &Request<Incoming>) -> Response<ResponseBody> {
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
        to: &Target,
        head: &Head<'_>,
    ) -> Result<Arc<AgentSession>, Box<Response<ResponseBody>>> {
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
                "no such agent session: it has ended or never existed; send `initialize` again",
            ))
        })
    }
}

/// The code that clients know as "session not found".
const SESSION_NOT_FOUND: i32 = -32001;

async fn answer(
    session: &Arc<AgentSession>,
    mut call: toolgate_gateway::Call,
) -> Response<ResponseBody> {
    match call.begun().await {
        Begun::All(First::Answer(answer, rejection)) => json(reply::status(rejection), answer),
        Begun::All(First::Stream) => stream::reply(session.stream(&call), session.version()),
        Begun::Relaying(relay_reader) => reply::relayed(relay_reader),
    }
}

async fn batch(
    session: &Arc<AgentSession>,
    members: &[Result<Message<'_>, Refusal>],
) -> Response<ResponseBody> {
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

/// An empty body.
fn empty() -> ResponseBody {
    ResponseBody::Whole(Pieces::default())
}

/// A complete body.
fn whole(body: impl Into<Pieces>) -> ResponseBody {
    ResponseBody::Whole(body.into())
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
