//! The pins of all servers: shared by the servers of one name, stored, and recorded in the audit.
//!
//! Invariant: pins outlive their server. A server that is replaced, or removed and added again, is
//! judged by what was recorded under its name.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use toolgate_admission::admit::Admission;
use toolgate_admission::list_kind::Kind;
use toolgate_audit::{Draft, RowKind};
use toolgate_catalog::likeness;
use toolgate_policy::Class;
use toolgate_store::Document;
use toolgate_upstream::pins::{Approval, Drift, PinRecorder, SPACE, ServerPins, split_key};

use super::Gateway;
use crate::downstream::endpoint::Endpoint;

/// How many pairs of confusable names are recorded in one process.
const MAX_SHADOWING: usize = 1_000;

/// The pins of all servers, by name.
pub(crate) struct PinBook {
    all: Mutex<HashMap<Arc<str>, Arc<ServerPins>>>,
    recorder: Arc<Recorder>,
}

/// Stores pins and records drift.
struct Recorder {
    admission: Arc<Admission>,
    shadowing: Mutex<ShadowedNames>,
    /// Servers whose definitions were met since the last look.
    met: Mutex<HashSet<Arc<str>>>,
}

/// Names of tools of all servers, by what people take for the same.
#[derive(Default)]
struct ShadowedNames {
    book: Option<std::sync::Weak<PinBook>>,
    recorded: HashSet<String>,
}

impl PinBook {
    pub(crate) fn new(admission: &Arc<Admission>) -> Arc<Self> {
        let recorder = Arc::new(Recorder {
            admission: Arc::clone(admission),
            shadowing: Mutex::default(),
            met: Mutex::default(),
        });
        let book = Arc::new(Self { all: Mutex::default(), recorder });
        book.recorder.shadowing.lock().book = Some(Arc::downgrade(&book));
        book
    }

    /// The pins of the server of this name.
    pub(crate) fn of(&self, server: &str) -> Arc<ServerPins> {
        let mut all = self.all.lock();
        if let Some(known) = all.get(server) {
            return Arc::clone(known);
        }
        let recorder: Arc<dyn PinRecorder> = Arc::clone(&self.recorder) as _;
        let pins = Arc::new(ServerPins::new(server).with_recorder(recorder));
        all.insert(server.into(), Arc::clone(&pins));
        pins
    }

    fn servers(&self) -> Vec<(Arc<str>, Arc<ServerPins>)> {
        self.all.lock().iter().map(|(name, pins)| (Arc::clone(name), Arc::clone(pins))).collect()
    }
}

impl Gateway {
    /// The pins of the server of this name.
    pub fn pins(&self, server: &str) -> Arc<ServerPins> {
        self.pins.of(server)
    }

    /// Restores the pins that an earlier process stored. Must be called before a server is listed.
    pub fn restore_pins(&self, stored: &[Document]) {
        for Document { key, json, .. } in stored {
            let (server, tool) = split_key(key);
            self.pins.of(server).restore(tool, json);
        }
    }

    /// Replaces what people approved.
    pub fn set_approved_tools(&self, stored: &[Document]) {
        let mut approved = Approval::by_server(stored.iter().map(|document| &*document.json));
        for (server, pins) in self.pins.servers() {
            pins.set_approved(approved.remove(&*server).unwrap_or_default());
        }
        for (server, tools) in approved {
            self.pins.of(&server).set_approved(tools);
        }
    }
}

impl Gateway {
    /// Notifies agents of one server whose tools were quarantined or released since the last call.
    /// Agents of `/mcp` are notified when the list cache changes.
    pub(super) fn notify_quarantined(&self) {
        let met = std::mem::take(&mut *self.pins.recorder.met.lock());
        for server in met {
            for session in self.sessions_on(&Endpoint::Server(server.to_string())) {
                session.lists_changed(&[Kind::Tools]);
            }
        }
    }
}

impl PinRecorder for Recorder {
    fn keep(&self, documents: Vec<(Arc<str>, Arc<str>)>) {
        self.admission.store().keep_documents(SPACE, documents, Vec::new());
    }

    fn record(&self, drift: Drift) {
        let Drift { server, tool, fingerprint, class, is_quarantined, message, left_out } = drift;
        tracing::warn!(
            server = &*server,
            tool = %toolgate_catalog::draw(&tool),
            "drift: {}",
            toolgate_catalog::draw(&message)
        );
        let row = Draft {
            server: Some(server),
            tool: Some(tool),
            fingerprint,
            risk: Some(class.as_str().into()),
            error_code: is_quarantined.then(|| "quarantined".into()),
            message: Some(message.into()),
            // The row stands for itself and for those that were left out.
            count: (left_out > 0).then_some(left_out + 1),
            ..Draft::new(RowKind::Drift, self.admission.now())
        };
        // Submitted at once; a store that cannot write refuses the next call.
        drop(self.admission.store().record(row));
    }

    fn listed(&self, server: &str) {
        self.met.lock().insert(server.into());
        let found = {
            let mut shadowing = self.shadowing.lock();
            let Some(book) = shadowing.book.as_ref().and_then(std::sync::Weak::upgrade) else {
                return;
            };
            shadowing.find(&book.servers(), server)
        };
        for (tool, class, message) in found {
            self.record(Drift {
                server: server.into(),
                tool,
                fingerprint: None,
                class,
                is_quarantined: false,
                message,
                left_out: 0,
            });
        }
    }
}

impl ShadowedNames {
    /// The tools of `server` whose names people take for those of another server, once each.
    fn find(
        &mut self,
        servers: &[(Arc<str>, Arc<ServerPins>)],
        server: &str,
    ) -> Vec<(Arc<str>, Class, String)> {
        let Some((_, pins)) = servers.iter().find(|(name, _)| **name == *server) else {
            return Vec::new();
        };
        let own = pins.newest();
        let mut alike: HashMap<String, Vec<&str>> = HashMap::new();
        for tool in own.keys() {
            alike.entry(likeness(tool)).or_default().push(tool);
        }
        let mut found = Vec::new();
        for (other, pins) in servers.iter().filter(|(name, _)| **name != *server) {
            for theirs in pins.newest().keys() {
                for tool in alike.get(&likeness(theirs)).into_iter().flatten() {
                    let pair = pair((server, tool), (other, theirs));
                    if self.recorded.len() >= MAX_SHADOWING || !self.recorded.insert(pair) {
                        continue;
                    }
                    let what =
                        if **tool == **theirs { "the same name as" } else { "is confusable with" };
                    let message = format!("shadowing: {what} `{theirs}` of server `{other}`");
                    let class = own.get(*tool).map(|facts| facts.class).unwrap_or_default();
                    found.push(((*tool).into(), class, message));
                }
            }
        }
        found
    }
}

/// A key that is the same for both directions.
fn pair(one: (&str, &str), two: (&str, &str)) -> String {
    let (one, two) = if one <= two { (one, two) } else { (two, one) };
    format!("{}\n{}\n{}\n{}", one.0, one.1, two.0, two.1)
}
