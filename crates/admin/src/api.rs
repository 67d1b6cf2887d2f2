//! The API as a whole: what it is made of, and what a handler is given.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;
use toolgate_audit::{Draft, RowKind};
use toolgate_gateway::{Clock, Gateway};
use toolgate_store::{Change, Store};

use crate::fault::{Fault, Flaw};
use crate::people::{People, Person, Role};
use crate::query::Query;
use crate::streams::Streams;
use crate::tried::Tried;
use crate::view::View;

/// What the API is made of.
pub struct Given {
    /// What is changed and read.
    pub store: Arc<dyn Store>,
    /// What servers and agents there are.
    pub gateway: Arc<Gateway>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Random bytes; none if there are none to be had, and then nothing is made.
    pub random: fn() -> Option<[u8; 32]>,
    /// What a server's entry must look like.
    pub entries: Arc<dyn Entries>,
    /// The sessions that programs have dialled in with.
    pub sessions: Option<Arc<Sessions>>,
    /// Where everything listens, and with which durability: part of the status, as it stands.
    pub facts: serde_json::Map<String, serde_json::Value>,
    /// Policies that passed their own tests.
    pub tried: Arc<Tried>,
    /// Ends streams of events.
    pub stop: CancellationToken,
}

/// The items of `GET /api/v1/sessions`.
pub type Sessions = dyn Fn() -> Vec<serde_json::Value> + Send + Sync;

/// Knows what a server's entry must look like.
pub trait Entries: Send + Sync {
    /// Everything that is wrong with an entry (a JSON object) for a server of this name.
    fn check(&self, name: &str, entry: &str) -> Result<(), Vec<Flaw>>;
}

/// The admin API.
pub struct Admin {
    pub(crate) given: Given,
    people: ArcSwap<People>,
    view: ArcSwap<View>,
    /// Changes that read before they write take turns.
    pub(crate) turn: Mutex<()>,
    /// So do freezes, apart from all others.
    pub(crate) freezing: Mutex<()>,
    /// Documents that are checked at once.
    pub(crate) checks: Arc<Semaphore>,
    /// Streams of events.
    pub(crate) streams: Arc<Streams>,
}

/// Most documents that are checked at once.
const CHECKS: usize = 2;

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
    /// An API that knows nobody yet.
    pub fn new(given: Given) -> Arc<Self> {
        let (people, view) = (ArcSwap::default(), ArcSwap::default());
        let (checks, streams) = (Arc::new(Semaphore::new(CHECKS)), Arc::default());
        let (turn, freezing) = (Mutex::default(), Mutex::default());
        Arc::new(Self { given, people, view, turn, freezing, checks, streams })
    }

    /// From the next request on, these are the people and this is what they see.
    pub fn set(&self, people: People, view: View) {
        self.people.store(Arc::new(people));
        self.view.store(Arc::new(view));
    }

    /// Whether these headers show the token of somebody who may look.
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
        (self.given.random)().ok_or_else(|| Fault::unavailable("the system gives no randomness"))
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

    /// Makes a change together with its row, and puts it in force.
    pub(crate) async fn change(&self, change: Change, row: Draft) -> Result<(), Fault> {
        self.admin.given.store.change(change, row).await?;
        let admission = self.admin.given.gateway.admission();
        admission.refresh().await.map_err(|why| {
            Fault::unavailable(format!("the change is kept, but not in force: {why}"))
        })
    }
}
