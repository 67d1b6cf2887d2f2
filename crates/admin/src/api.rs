//! The API: its dependencies, and what a handler receives.

use std::fmt;
use std::sync::Arc;

use axum::http::{HeaderMap, header};
use bytes::Bytes;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use toolgate_audit::{Draft, Hash, RowKind, VerifyReport};
use toolgate_control::{Control, Person, Role, View};
use toolgate_gateway::{AuthFailures, Clock, Gateway};
use toolgate_store::{Change, Store, StoreError};

use crate::fault::Fault;
use crate::query::Query;
use crate::sign_in_links::SignInLinks;
use crate::streams::Streams;

/// The dependencies of the API.
pub struct Given {
    /// What is active; makes changes.
    pub control: Arc<Control>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Random bytes; `None` if the system has none, and then nothing is created.
    pub random: fn() -> Option<[u8; 32]>,
    /// The connected sessions.
    pub sessions: Option<Arc<Sessions>>,
    /// When toolgate started.
    pub started: Timestamp,
    /// Listeners and durability: a part of the status, unchanged.
    pub facts: serde_json::Map<String, serde_json::Value>,
    /// Closes event streams.
    pub stop: CancellationToken,
    /// Reads and verifies the whole audit; blocks.
    pub verify: Arc<Verify>,
}

/// Verifies the whole audit.
pub type Verify = dyn Fn() -> Result<VerifyReport, StoreError> + Send + Sync;

/// The items of `GET /api/v1/sessions`.
pub type Sessions = dyn Fn() -> Vec<serde_json::Value> + Send + Sync;

/// The admin API.
pub struct Admin {
    pub(crate) given: Given,
    /// Serialises changes that read before they write.
    pub(crate) turn: Mutex<()>,
    /// Serialises freezes, independently of other changes.
    pub(crate) freezing: Mutex<()>,
    /// Open event streams.
    pub(crate) streams: Arc<Streams>,
    /// One verification of the audit at a time.
    pub(crate) verifying: Mutex<()>,
    /// Links that sign a person in to the console.
    pub(crate) sign_in_links: SignInLinks,
}

/// An authorised request.
pub(crate) struct Ask {
    pub(crate) admin: Arc<Admin>,
    pub(crate) who: Arc<Person>,
    /// The SHA-256 of the person's token.
    pub(crate) token: Hash,
    /// `via` of the audit row; `None` for requests over HTTP.
    pub(crate) via: Option<&'static str>,
    /// The path parameters of the route.
    pub(crate) params: Vec<(String, String)>,
    pub(crate) query: Query,
    pub(crate) body: Bytes,
    pub(crate) headers: HeaderMap,
}

// === impl Admin ===

impl Admin {
    /// An API for what this control makes active.
    pub fn new(given: Given) -> Arc<Self> {
        let (turn, freezing) = (Mutex::default(), Mutex::default());
        let (streams, sign_in_links) = (Arc::default(), SignInLinks::default());
        let verifying = Mutex::default();
        Arc::new(Self { given, turn, freezing, streams, verifying, sign_in_links })
    }

    /// Whether these headers carry the token of a person who may view.
    pub fn may_look(&self, headers: &HeaderMap) -> bool {
        let token = token_of(headers);
        token.and_then(|token| self.person(&token)).is_some_and(|who| who.may(Role::Viewer))
    }

    /// The person whose token has this SHA-256, if it is valid now.
    pub fn person(&self, token: &Hash) -> Option<Arc<Person>> {
        self.given.control.people().find_by_hash(token, self.now())
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.given.clock.now()
    }

    /// Counts, logs and records failed authentication.
    pub fn auth_failures(&self) -> &AuthFailures {
        self.gateway().admission().auth_failures()
    }

    /// Random bits; `None` if the system has none.
    pub fn random_bits(&self) -> Option<[u8; 32]> {
        (self.given.random)()
    }

    pub(crate) fn view(&self) -> Arc<View> {
        self.given.control.view()
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        self.given.control.store()
    }

    pub(crate) fn gateway(&self) -> &Arc<Gateway> {
        self.given.control.gateway()
    }

    pub(crate) fn random(&self) -> Result<[u8; 32], Fault> {
        (self.given.random)()
            .ok_or_else(|| Fault::unavailable("the system provides no random bytes"))
    }
}

/// The SHA-256 of the token in these headers.
pub(crate) fn token_of(headers: &HeaderMap) -> Option<Hash> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let bearer = scheme.eq_ignore_ascii_case("bearer");
    bearer.then(|| Hash::of(token.trim_matches(' ').as_bytes()))
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin").finish_non_exhaustive()
    }
}

// === impl Ask ===

impl Ask {
    /// The path parameter `name`.
    pub(crate) fn param(&self, name: &str) -> &str {
        let found = self.params.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// Fails if the token was revoked, replaced or given other roles since the request arrived: its
    /// body may take a minute, and it may wait for its turn.
    pub(crate) fn check_person(&self) -> Result<(), Fault> {
        let current = self.admin.person(&self.token);
        let is_same = current.is_some_and(|current| current == self.who);
        if is_same { Ok(()) } else { Err(Fault::unauthorized()) }
    }

    /// The body, parsed as JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Fault::bad_request(format!("invalid request body: {error}")))
    }

    /// The audit row of this request.
    pub(crate) fn row(&self, message: &str) -> Draft {
        let mut row = Draft::new(RowKind::Admin, self.admin.now());
        row.person = Some(Arc::clone(&self.who.name));
        row.via = self.via.map(Into::into);
        row.message = Some(message.into());
        row
    }

    /// Makes a change together with its row, and makes it active.
    pub(crate) async fn change(&self, change: Change, row: Draft) -> Result<(), Fault> {
        self.check_person()?;
        Ok(self.admin.given.control.change(change, row).await?)
    }
}
