//! The API as a whole: what it is made of, and what a handler is given.

use std::fmt;
use std::sync::Arc;

use axum::http::{HeaderMap, header};
use bytes::Bytes;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use toolgate_audit::{Draft, RowKind};
use toolgate_control::{Control, Person, Role, View};
use toolgate_gateway::{Clock, Gateway};
use toolgate_store::{Change, Store};

use crate::fault::Fault;
use crate::query::Query;
use crate::streams::Streams;

/// What the API is made of.
pub struct Given {
    /// What is active; makes changes.
    pub control: Arc<Control>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Random bytes; `None` if the system has none, and then nothing is created.
    pub random: fn() -> Option<[u8; 32]>,
    /// The sessions that programs have dialled in with.
    pub sessions: Option<Arc<Sessions>>,
    /// Where everything listens, and with which durability: part of the status, as it stands.
    pub facts: serde_json::Map<String, serde_json::Value>,
    /// Ends streams of events.
    pub stop: CancellationToken,
}

/// The items of `GET /api/v1/sessions`.
pub type Sessions = dyn Fn() -> Vec<serde_json::Value> + Send + Sync;

/// The admin API.
pub struct Admin {
    pub(crate) given: Given,
    /// Changes that read before they write take turns.
    pub(crate) turn: Mutex<()>,
    /// So do freezes, apart from all others.
    pub(crate) freezing: Mutex<()>,
    /// Streams of events.
    pub(crate) streams: Arc<Streams>,
}

/// A request of somebody who may make it.
pub(crate) struct Ask {
    pub(crate) admin: Arc<Admin>,
    pub(crate) who: Arc<Person>,
    /// The parts of the path that the route leaves open.
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
        Arc::new(Self { given, turn, freezing, streams: Arc::default() })
    }

    /// Whether these headers show the token of somebody who may look.
    pub fn may_look(&self, headers: &HeaderMap) -> bool {
        self.person(headers).is_some_and(|who| who.may(Role::Viewer))
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

    pub(crate) fn now(&self) -> Timestamp {
        self.given.clock.now()
    }

    pub(crate) fn random(&self) -> Result<[u8; 32], Fault> {
        (self.given.random)().ok_or_else(|| Fault::unavailable("the system gives no randomness"))
    }

    /// Whether this person has not been revoked since.
    pub(crate) fn still_knows(&self, who: &Person) -> bool {
        self.given.control.people().has(&who.name, self.now())
    }

    pub(crate) fn person(&self, headers: &HeaderMap) -> Option<Arc<Person>> {
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return None };
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        let token = token.trim_matches(' ');
        let bearer = scheme.eq_ignore_ascii_case("bearer");
        bearer.then(|| self.given.control.people().find(token, self.now())).flatten()
    }
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin").finish_non_exhaustive()
    }
}

// === impl Ask ===

impl Ask {
    /// The part of the path that the route calls `name`.
    pub(crate) fn param(&self, name: &str) -> &str {
        let found = self.params.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// The body, read as JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Fault::bad_request(format!("the body is not as it must be: {error}")))
    }

    /// The row of what this person does.
    pub(crate) fn row(&self, message: &str) -> Draft {
        let mut row = Draft::new(RowKind::Admin, self.admin.now());
        row.person = Some(Arc::clone(&self.who.name));
        row.message = Some(message.into());
        row
    }

    /// Makes a change together with its row, and makes it active.
    pub(crate) async fn change(&self, change: Change, row: Draft) -> Result<(), Fault> {
        Ok(self.admin.given.control.change(change, row).await?)
    }
}
