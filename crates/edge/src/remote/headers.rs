//! The headers of every request to one server, prepared once.
//!
//! Invariant: nothing of an agent's request is in here: only toolgate's own headers, the configured
//! ones, and the session id of the server.
//! Invariant: a session id is adopted once, from a successful response to a request without one.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use http::header::{
    ACCEPT, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TE, TRANSFER_ENCODING, UPGRADE,
    USER_AGENT,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use toolgate_gateway::channel::Heads;

/// The session that a server opened with its answer to `initialize`.
const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Headers that must not be configured: the protocol or the connection would break.
const RESERVED: [HeaderName; 12] = [
    ACCEPT,
    CONNECTION,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    LAST_EVENT_ID,
    METHOD,
    NAME,
    PROTOCOL_VERSION,
    SESSION_ID,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The current headers.
#[derive(Debug)]
pub(super) struct Headers(RwLock<State>);

#[derive(Debug)]
struct State {
    /// All headers of a POST.
    post: HeaderMap,
    session: Option<HeaderValue>,
}

impl Headers {
    /// toolgate's own headers, overridden by the configured ones.
    pub(super) fn new(
        server: &str,
        host: HeaderValue,
        listed: &[(HeaderName, HeaderValue)],
    ) -> Self {
        let mut post = HeaderMap::with_capacity(listed.len() + 8);
        post.insert(HOST, host);
        post.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("toolgate/", env!("CARGO_PKG_VERSION"))),
        );
        let mut configured = HeaderMap::new();
        for (name, value) in listed {
            if RESERVED.contains(name) {
                tracing::warn!(
                    server,
                    "configured header `{name}` ignored: it belongs to the protocol"
                );
                continue;
            }
            let mut value = value.clone();
            value.set_sensitive(true);
            configured.append(name.clone(), value);
        }
        post.extend(configured);
        post.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        post.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        Self(RwLock::new(State { post, session: None }))
    }

    /// The headers of a POST, and its session id.
    pub(super) fn post(&self) -> (HeaderMap, Option<HeaderValue>) {
        let state = self.read();
        (state.post.clone(), state.session.clone())
    }

    /// The headers of a POST of protocol 2026-07-28, which has no sessions.
    pub(super) fn post_with(&self, heads: &Heads) -> HeaderMap {
        let mut headers = self.read().post.clone();
        headers.remove(SESSION_ID);
        for (name, value) in heads {
            let name = HeaderName::from_bytes(name.as_bytes());
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
                headers.insert(name, value);
            }
        }
        headers
    }

    /// The headers of a GET that opens or resumes a stream.
    pub(super) fn stream(&self, last_event: Option<&str>) -> HeaderMap {
        let mut headers = self.read().post.clone();
        headers.remove(CONTENT_TYPE);
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(id) = last_event.and_then(|id| HeaderValue::from_bytes(id.as_bytes()).ok()) {
            headers.insert(LAST_EVENT_ID, id);
        }
        headers
    }

    /// The headers of the DELETE that ends the session, if there is one.
    pub(super) fn delete(&self) -> Option<(HeaderMap, HeaderValue)> {
        let state = self.read();
        let session = state.session.clone()?;
        let mut headers = state.post.clone();
        headers.remove(CONTENT_TYPE);
        Some((headers, session))
    }

    /// Adopts the session id of a successful response, unless the request already had one.
    pub(super) fn adopt(&self, sent: Option<&HeaderValue>, answered: &HeaderMap) {
        let (None, Some(id)) = (sent, answered.get(SESSION_ID)) else { return };
        let mut state = self.write();
        if state.session.is_none() {
            let mut id = id.clone();
            id.set_sensitive(true);
            state.post.insert(SESSION_ID, id.clone());
            state.session = Some(id);
        }
    }

    /// Forgets the session `sent` and its protocol version.
    pub(super) fn forget(&self, sent: &HeaderValue) {
        let mut state = self.write();
        if state.session.as_ref() == Some(sent) {
            state.session = None;
            state.post.remove(SESSION_ID);
            state.post.remove(PROTOCOL_VERSION);
        }
    }

    /// Sends the protocol version from now on.
    pub(super) fn establish(&self, version: &str) {
        if let Ok(version) = HeaderValue::from_str(version) {
            self.write().post.insert(PROTOCOL_VERSION, version);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
