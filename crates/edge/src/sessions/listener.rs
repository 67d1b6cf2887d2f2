//! The listener: which HTTP requests become sockets.

use std::convert::Infallible;
use std::future::Ready;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, SEC_WEBSOCKET_ACCEPT};
use http::header::{SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::Service;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_util::task::TaskTracker;
use toolgate_gateway::{AuthFailureReason, Listener, Peer, SessionDriver};
use toolgate_session::{SessionEventKind, SocketToken};

use super::intake::Intake;
use super::socket::{self, Socket};
use super::tokens::Tokens;
use crate::admin_listener::AccessObserver;
use crate::guard::Guard;
use crate::linger::Lingering;
use crate::listen::PeerShare;
use crate::tls::Stream;

/// How long an upgrade may take.
const UPGRADING: Duration = Duration::from_secs(10);

/// The service of the session listener.
#[derive(Clone)]
pub struct SessionListener(Arc<Inner>);

struct Inner {
    driver: Arc<SessionDriver>,
    intake: Arc<Intake>,
    rules: ArcSwap<SessionListenerRules>,
    free: Arc<Semaphore>,
    sockets: TaskTracker,
    observer: AccessObserver,
}

/// How much all sockets together may take.
#[derive(Debug, Clone, Copy)]
pub struct SessionListenerBounds {
    /// Sockets that are open at once.
    pub sockets: usize,
    /// Bytes of frames that are not finished.
    pub unfinished: usize,
}

/// Which requests are accepted.
#[derive(Debug, Clone)]
pub struct SessionListenerRules {
    /// Who may reach the listener.
    pub guard: Guard,
    /// The path of the socket, without a token.
    pub path: String,
    /// The valid tokens.
    pub tokens: Tokens,
    /// The largest frame, bytes.
    pub frame: usize,
}

type Reply = Response<Full<Bytes>>;

impl SessionListener {
    /// Accepts sockets for a driver; `sockets` tracks the open ones.
    pub fn new(
        driver: Arc<SessionDriver>,
        rules: SessionListenerRules,
        bounds: SessionListenerBounds,
        sockets: TaskTracker,
        observer: AccessObserver,
    ) -> Self {
        let (free, intake) =
            (Arc::new(Semaphore::new(bounds.sockets)), Intake::new(bounds.unfinished));
        let rules = ArcSwap::from_pointee(rules);
        Self(Arc::new(Inner { driver, intake, rules, free, sockets, observer }))
    }

    /// Replaces the rules; sockets whose token was removed are closed.
    pub fn set_rules(&self, rules: SessionListenerRules) {
        let before = self.0.rules.swap(Arc::new(rules));
        for token in before.tokens.revoked(&self.0.rules.load().tokens) {
            self.0.driver.revoke(token);
        }
    }

    /// Who may reach the listener now.
    pub fn guard(&self) -> Guard {
        self.0.rules.load().guard.clone()
    }
}

impl Service<Request<Incoming>> for SessionListener {
    type Response = Reply;
    type Error = Infallible;
    type Future = Ready<Result<Reply, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        std::future::ready(Ok(self.0.open(request)))
    }
}

impl Inner {
    fn open(self: &Arc<Self>, mut request: Request<Incoming>) -> Reply {
        let rules = self.rules.load_full();
        let peer = request.extensions().get().copied();
        if let Err(denied) = rules.guard.check(request.uri(), request.headers()) {
            if let Some(why) = denied.auth_failure() {
                (self.observer)(Listener::Sessions, why, peer);
            }
            return text(denied.status(), &format!("{denied}\n"));
        }
        let Some(token) = token_in(request.uri().path(), &rules.path) else {
            return text(StatusCode::NOT_FOUND, "not found\n");
        };
        let admitted = rules.tokens.admit(token);
        if admitted.is_none() {
            let why = if token.is_empty() {
                AuthFailureReason::NoToken
            } else {
                AuthFailureReason::BadToken
            };
            (self.observer)(Listener::Sessions, why, peer);
        }
        let key = match websocket_key(&request) {
            Ok(key) => key,
            Err(why) => return upgrade_required(why),
        };
        let Ok(place) = Arc::clone(&self.free).try_acquire_owned() else {
            self.driver.record(SessionEventKind::TooMany, None, "socket rejected".to_owned());
            return text(StatusCode::SERVICE_UNAVAILABLE, "too many sockets, sorry\n");
        };
        let upgrade = hyper::upgrade::on(&mut request);
        // Counted among the connections of its address as long as the socket lives.
        let share = request.extensions_mut().remove::<PeerShare>();
        let inner = Arc::clone(self);
        self.sockets.spawn(async move {
            inner.serve(upgrade, admitted, (rules.frame, peer), place).await;
            drop(share);
        });
        switching(&key)
    }

    async fn serve(
        &self,
        upgrade: OnUpgrade,
        admitted: Option<Arc<SocketToken>>,
        (frame, peer): (usize, Option<Peer>),
        place: OwnedSemaphorePermit,
    ) {
        let Ok(Ok(upgraded)) = timeout(UPGRADING, upgrade).await else { return };
        // Cannot fail: all listeners serve this type.
        let Ok(parts) = upgraded.downcast::<TokioIo<Lingering<Stream>>>() else { return };
        let stream = parts.io.into_inner().into_inner();
        let socket = Socket { stream, early: parts.read_buf, frame, peer };
        if let Some(token) = admitted {
            socket::serve(Arc::clone(&self.driver), &self.intake, socket, token).await;
        } else {
            socket::reject(socket).await;
        }
        drop(place);
    }
}

/// The token after the path, possibly empty; `None` for another path.
fn token_in<'a>(path: &'a str, ours: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(ours)?;
    match rest.strip_prefix('/') {
        None => rest.is_empty().then_some(""),
        Some(token) => (!token.contains('/')).then_some(token),
    }
}

fn websocket_key(request: &Request<Incoming>) -> Result<HeaderValue, &'static str> {
    let headers = request.headers();
    let upgrades = request.method() == Method::GET
        && has_word(headers, &CONNECTION, "upgrade")
        && has_word(headers, &UPGRADE, "websocket");
    if !upgrades {
        return Err("programs connect here with WebSocket; agents use the other listener\n");
    }
    if headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        return Err("only WebSocket version 13 is supported\n");
    }
    headers.get(SEC_WEBSOCKET_KEY).cloned().ok_or("the header Sec-WebSocket-Key is missing\n")
}

fn has_word(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|one| one.trim().eq_ignore_ascii_case(word))
}

fn switching(key: &HeaderValue) -> Reply {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accept) = HeaderValue::from_str(&derive_accept_key(key.as_bytes())) {
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    response
}

fn upgrade_required(why: &str) -> Reply {
    let mut response = text(StatusCode::UPGRADE_REQUIRED, why);
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    response
}

fn text(status: StatusCode, words: &str) -> Reply {
    let mut response = Response::new(Full::from(words.to_owned()));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_follows_the_path() {
        for (path, expected) in [
            ("/sessions", Some("")),
            ("/sessions/", Some("")),
            ("/sessions/abc", Some("abc")),
            ("/sessions/abc/d", None),
            ("/sessionsabc", None),
            ("/", None),
        ] {
            assert_eq!(token_in(path, "/sessions"), expected, "{path}");
        }
    }
}
