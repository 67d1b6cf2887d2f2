//! The pins of all servers: shared by the servers of one name, stored, and recorded in the audit.
//!
//! Invariant: pins outlive their server. A server that is replaced, or removed and added again, is
//! judged by what was recorded under its name.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use toolgate_admission::admit::Admission;
use toolgate_admission::list_kind::Kind;
use toolgate_admission::reserved::SESSIONS;
use toolgate_audit::{Draft, RowKind};
use toolgate_catalog::likeness;
use toolgate_policy::Class;
use toolgate_store::Document;
use toolgate_upstream::pins::{Approval, Drift, Met, PinRecorder, SPACE, ServerPins, split_key};

use super::Gateway;
use crate::downstream::endpoint::Endpoint;

/// How many pairs of confusable names are recorded in one process.
const MAX_SHADOWING: usize = 1_000;
/// How many tools are compared with a new one of the same likeness.
const MAX_ALIKE: usize = 16;

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

/// A server, and its tool as it is pinned.
type ServerTool = (Arc<str>, Box<str>);

/// Tools of all servers, by names that people take for the same.
#[derive(Default)]
struct ShadowedNames {
    known: HashMap<String, Vec<ServerTool>>,
    /// How many pairs were found.
    found: usize,
}

impl PinBook {
    pub(crate) fn new(admission: &Arc<Admission>) -> Arc<Self> {
        let recorder = Arc::new(Recorder {
            admission: Arc::clone(admission),
            shadowing: Mutex::default(),
            met: Mutex::default(),
        });
        Arc::new(Self { all: Mutex::default(), recorder })
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

    fn listed(&self, server: &Arc<str>, new: &[Met]) {
        self.met.lock().insert(Arc::clone(server));
        let found = self.shadowing.lock().find(server, new);
        for (tool, class, message) in found {
            self.record(Drift {
                server: Arc::clone(server),
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
    /// The new tools of `server` whose names people take for those of another server.
    fn find(&mut self, server: &Arc<str>, new: &[Met]) -> Vec<(Arc<str>, Class, String)> {
        let mut found = Vec::new();
        for (tool, facts) in new {
            let alike = self.known.entry(likeness(own_name(server, tool))).or_default();
            for (other, theirs) in alike.iter().filter(|(other, _)| other != server) {
                if self.found >= MAX_SHADOWING {
                    break;
                }
                self.found += 1;
                let (mine, theirs) = (own_name(server, tool), own_name(other, theirs));
                let what = if mine == theirs { "the same name as" } else { "is confusable with" };
                let message = format!("shadowing: {what} `{theirs}` of server `{other}`");
                found.push(((&**tool).into(), facts.class, message));
            }
            if alike.len() < MAX_ALIKE {
                alike.push((Arc::clone(server), tool.clone()));
            }
        }
        found
    }
}

/// The name of a tool in its list; the pins of sessions have the kind before it.
fn own_name<'t>(server: &str, tool: &'t str) -> &'t str {
    if server != SESSIONS {
        return tool;
    }
    tool.split_once('/').map_or(tool, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use toolgate_upstream::pins::Facts;

    use super::*;

    #[test]
    fn names_that_people_take_for_the_same_are_found_once() {
        let mut names = ShadowedNames::default();
        let mut found = |server: &str, tool: &str| -> Vec<String> {
            let new = [(tool.into(), Arc::new(Facts::of(tool, "{}")))];
            let found = names.find(&server.into(), &new);
            found.into_iter().map(|(tool, _, message)| format!("{tool}: {message}")).collect()
        };
        assert!(found("a", "read").is_empty());
        assert!(found("a", "write").is_empty());
        assert_eq!(found("b", "read"), ["read: shadowing: the same name as `read` of server `a`"]);
        let cyrillic = "re\u{430}d";
        assert_eq!(found("c", cyrillic).len(), 2, "confusable with those of a and b");
        // The kind of a session is not part of the name that agents see.
        assert_eq!(
            found(SESSIONS, "client/write"),
            ["client/write: shadowing: the same name as `write` of server `a`"]
        );
    }

    #[test]
    fn a_thousand_tools_of_one_name_cost_no_more_than_a_few() {
        let mut names = ShadowedNames::default();
        let facts = Arc::new(Facts::of("x", "{}"));
        for server in 0..1_000 {
            let server: Arc<str> = format!("s{server}").into();
            let found = names.find(&server, &[("x".into(), Arc::clone(&facts))]);
            assert!(found.len() <= MAX_ALIKE);
        }
        assert_eq!(names.found, MAX_SHADOWING);
    }
}
