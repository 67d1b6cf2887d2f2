//! The API: its dependencies, and what a handler receives.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;
use toolgate_audit::{Draft, Kind};
use toolgate_gateway::{Clock, Gateway};
use toolgate_store::{Change, Store};

use crate::fault::{Fault, Flaw};
use crate::people::{People, Person, Role};
use crate::query::Query;
use crate::streams::Streams;
use crate::tried::Tried;
use crate::view::View;

/// The dependencies of the API.
pub struct Given {
    /// Reads and changes.
    pub store: Arc<dyn Store>,
    /// Servers and agents.
    pub gateway: Arc<Gateway>,
    /// The current time.
    pub clock: Arc<dyn Clock>,
    /// Random bytes; `None` if the system provides none, and then nothing is created.
    pub random: fn() -> Option<[u8; 32]>,
    /// Validates a server's entry.
    pub entries: Arc<dyn Entries>,
    /// The connected sessions.
    pub sessions: Option<Arc<Sessions>>,
    /// Listeners and durability: a part of the status, unchanged.
    pub facts: serde_json::Map<String, serde_json::Value>,
    /// Policies that passed their own tests.
    pub tried: Arc<Tried>,
    /// Closes event streams.
    pub stop: CancellationToken,
}

/// The items of `GET /api/v1/sessions`.
pub type Sessions = dyn Fn() -> Vec<serde_json::Value> + Send + Sync;

/// Validates a server's entry.
pub trait Entries: Send + Sync {
    /// All problems of an entry (a JSON object) for a server of this name.
    fn check(&self, name: &str, entry: &str) -> Result<(), Vec<Flaw>>;
}

/// The admin API.
pub struct Admin {
    pub(crate) given: Given,
    people: ArcSwap<People>,
    view: ArcSwap<View>,
    /// Serialises changes that read before they write.
    pub(crate) turn: Mutex<()>,
    /// Serialises freezes, independently of other changes.
    pub(crate) freezing: Mutex<()>,
    /// Limits documents that are checked at once.
    pub(crate) checks: Arc<Semaphore>,
    /// Open event streams.
    pub(crate) streams: Arc<Streams>,
}

/// How many documents are checked at once.
const CHECKS: usize = 2;

/// An authorised request.
pub(crate) struct Ask {
    pub(crate) admin: Arc<Admin>,
    pub(crate) who: Arc<Person>,
    /// The path parameters of the route.
    pub(crate) params: Vec<(String, String)>,
    pub(crate) query: Query,
    pub(crate) body: Bytes,
    pub(crate) headers: HeaderMap,
}

// === impl Admin ===

impl Admin {
    /// An API without people yet.
    pub fn new(given: Given) -> Arc<Self> {
        let (people, view) = (ArcSwap::default(), ArcSwap::default());
        let (checks, streams) = (Arc::new(Semaphore::new(CHECKS)), Arc::default());
        let (turn, freezing) = (Mutex::default(), Mutex::default());
        Arc::new(Self { given, people, view, turn, freezing, checks, streams })
    }

    /// Replaces the people and the view, from the next request on.
    pub fn set(&self, people: People, view: View) {
        self.people.store(Arc::new(people));
        self.view.store(Arc::new(view));
    }

    /// Whether these headers carry the token of a person who may view.
    pub fn may_look(&self, headers: &HeaderMap) -> bool {
        self.person(headers).is_some_and(|who| who.may(Role::Viewer))
    }

    pub(crate) fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.given.clock.now()
    }

    pub(crate) fn random(&self) -> Result<[u8; 32], Fault> {
        (self.given.random)()
            .ok_or_else(|| Fault::unavailable("the system provides no random bytes"))
    }

    /// Whether this person has not been revoked since.
    pub(crate) fn still_knows(&self, who: &Person) -> bool {
        self.people.load().has(&who.name, self.now())
    }

    pub(crate) fn person(&self, headers: &HeaderMap) -> Option<Arc<Person>> {
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return None };
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        let token = token.trim_matches(' ');
        let bearer = scheme.eq_ignore_ascii_case("bearer");
        bearer.then(|| self.people.load().find(token, self.now())).flatten()
    }
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

    /// The body, parsed as JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Fault::bad_request(format!("invalid request body: {error}")))
    }

    /// The audit row of this request.
    pub(crate) fn row(&self, message: &str) -> Draft {
        let mut row = Draft::new(Kind::Admin, self.admin.now());
        row.person = Some(Arc::clone(&self.who.name));
        row.message = Some(message.into());
        row
    }

    /// Writes a change together with its row, and applies it.
    pub(crate) async fn change(&self, change: Change, row: Draft) -> Result<(), Fault> {
        self.admin.given.store.change(change, row).await?;
        let admission = self.admin.given.gateway.admission();
        admission.refresh().await.map_err(|why| {
            Fault::unavailable(format!("the change is stored, but not active: {why}"))
        })
    }
}
