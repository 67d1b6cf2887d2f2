//! Pins: which definitions of a server's tools may be listed and called.
//!
//! Every list that a server sends is met here ([`ServerPins::meet`]): what is new is recorded, what
//! has changed is quarantined, and the audit gets a `drift` row. A call is judged by the newest
//! definition that its link has listed (`link/vetting.rs`).
//!
//! Invariant: fail closed. A definition that cannot be recorded or read is quarantined.
//! Invariant: only a person lifts a quarantine, or the server, by listing the approved definition
//! again.
//!
//! Start at [`ServerPins::meet`] and `pins/judge.rs`.

mod facts;
mod judge;
mod meet;
mod stored;
mod task_support;
mod tool_list;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::time::Instant;
use toolgate_audit::Hash;
use toolgate_policy::Class;

pub use self::facts::Facts;
pub use self::judge::Reason;
pub(crate) use self::meet::mark_ambiguous;
pub use self::meet::{Meeting, Met};
pub use self::stored::{APPROVED, Approval, SPACE, approval_key, split_key};
pub(crate) use self::tool_list::ToolList;
use crate::log_limit::LogLimit;

/// How many tools of one server are pinned; further ones are quarantined.
const MAX_PINS: usize = 100_000;
/// The longest name of a tool that is pinned.
const MAX_NAME: usize = 512;
/// How many bytes of definitions of one server are kept, for diffs. Of further ones only the
/// fingerprint is.
const MAX_DEFINITIONS: usize = 32 * 1024 * 1024;
/// How many definitions of one tool are recorded once each; further ones are recorded whenever met.
const MAX_RECORDED: usize = 16;
/// How many drift rows of one server are written in a minute.
const ROWS_A_MINUTE: u32 = 60;

/// What happens to new and changed definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PinMode {
    /// The first definition is approved; a changed one is quarantined.
    #[default]
    First,
    /// Every definition waits for a person.
    Strict,
    /// Changes are only recorded.
    Off,
}

/// The quarantined tools of a list, and why.
pub type Quarantined = BTreeMap<Box<str>, Reason>;

/// The pins of one server.
pub struct ServerPins {
    server: Arc<str>,
    state: RwLock<State>,
    /// Grows with every change of what is quarantined.
    revision: AtomicU64,
    recorder: OnceLock<Arc<dyn PinRecorder>>,
    rows: Mutex<LogLimit>,
}

/// A definition that may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// Its fingerprint.
    pub fingerprint: Hash,
    /// The definition, if it is short enough to be kept.
    pub definition: Option<Arc<str>>,
}

impl Pin {
    /// Whether these are the facts of this definition. Declared task support may differ: a server may
    /// leave it out for clients of one protocol.
    fn is_of(&self, facts: &Facts) -> bool {
        if facts.fingerprint == Some(self.fingerprint) {
            return true;
        }
        let both = self.definition.as_deref().zip(facts.definition.as_deref());
        both.is_some_and(|(one, other)| task_support::is_same_but_for_it(one, other))
    }
}

/// What is known of the definitions of one server.
#[derive(Debug, Default)]
struct State {
    /// A complete list was recorded.
    is_listed: bool,
    /// The first definition of each tool.
    pinned: HashMap<Box<str>, Pin>,
    /// What people approved. A server's tool has one; tools of sessions may have several.
    approved: HashMap<Box<str>, Vec<Pin>>,
    /// New tools that wait for a person.
    suspects: HashMap<Box<str>, (Option<Hash>, Reason)>,
    /// The newest definition of each tool, over any link.
    seen: HashMap<Box<str>, Arc<Facts>>,
    /// The last complete list, if its definitions are those of `seen`.
    last: Option<Arc<ToolList>>,
    /// What the audit has about each tool: the fingerprint, and whether it was quarantined.
    recorded: HashMap<Box<str>, Vec<(Option<Hash>, bool)>>,
    /// The bytes of the definitions in `pinned` and `seen`.
    kept: usize,
}

/// A change that the audit records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// The server.
    pub server: Arc<str>,
    /// The server's own name of the tool.
    pub tool: Arc<str>,
    /// The fingerprint of the definition that was met.
    pub fingerprint: Option<Hash>,
    /// Its risk class.
    pub class: Class,
    /// Whether the tool is quarantined.
    pub is_quarantined: bool,
    /// What happened, for people.
    pub message: String,
    /// How many rows before it were left out.
    pub left_out: u64,
}

/// Persists pins and records drift.
pub trait PinRecorder: Send + Sync {
    /// Stores documents of the space [`SPACE`].
    fn keep(&self, documents: Vec<(Arc<str>, Arc<str>)>);
    /// Records a change.
    fn record(&self, drift: Drift);
    /// The tools of a server have changed; these were not known before.
    fn listed(&self, server: &Arc<str>, new: &[Met]);
}

// === impl ServerPins ===

impl ServerPins {
    /// No pins yet.
    pub fn new(server: &str) -> Self {
        Self {
            server: server.into(),
            state: RwLock::default(),
            revision: AtomicU64::new(0),
            recorder: OnceLock::new(),
            rows: Mutex::new(LogLimit::new(ROWS_A_MINUTE, Duration::from_mins(1), Instant::now())),
        }
    }

    /// Sets who records; once.
    #[must_use]
    pub fn with_recorder(self, recorder: Arc<dyn PinRecorder>) -> Self {
        // The value was created just before, so nothing is set yet.
        drop(self.recorder.set(recorder));
        self
    }

    /// Grows with every change of what is quarantined.
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Why a tool with this definition is quarantined.
    pub fn quarantine(&self, mode: PinMode, own: &str, facts: &Facts) -> Option<Reason> {
        judge::judge(mode, &self.state.read(), own, facts)
    }

    /// The same for a name that the newest list of a connection does not have. The newest definition that
    /// any connection listed decides: leaving a tool out of a list does not make it callable.
    pub(crate) fn quarantine_unlisted(&self, mode: PinMode, own: &str) -> Option<Reason> {
        let state = self.state.read();
        if mode == PinMode::Strict && !state.approved.contains_key(own) {
            return Some(Reason::NotApproved);
        }
        judge::judge(mode, &state, own, state.seen.get(own)?)
    }

    /// The quarantined tools among these, which may come from an older list: the newest definition that
    /// any connection listed must be usable too.
    pub(crate) fn quarantined<'f>(
        &self,
        mode: PinMode,
        tools: impl Iterator<Item = (&'f Box<str>, &'f Arc<Facts>)>,
    ) -> Quarantined {
        let state = self.state.read();
        let newest = |own: &str| judge::judge(mode, &state, own, state.seen.get(own)?);
        let judged = tools.filter_map(|(own, facts)| {
            let reason = judge::judge(mode, &state, own, facts).or_else(|| newest(own));
            Some((own.clone(), reason?))
        });
        judged.collect()
    }

    /// Whether any of these tools is quarantined.
    pub(crate) fn quarantines_any(&self, mode: PinMode, tools: &[Met]) -> bool {
        let state = self.state.read();
        tools.iter().any(|(own, facts)| judge::judge(mode, &state, own, facts).is_some())
    }

    /// Whether any definition was recorded or approved.
    pub(crate) fn has_any(&self) -> bool {
        let state = self.state.read();
        state.is_listed || !state.pinned.is_empty() || !state.approved.is_empty()
    }

    /// The newest definition of each tool, in the order of their names.
    pub fn newest(&self) -> BTreeMap<Box<str>, Arc<Facts>> {
        let seen = &self.state.read().seen;
        seen.iter().map(|(own, facts)| (own.clone(), Arc::clone(facts))).collect()
    }

    /// The newest definition of a tool.
    pub fn newest_of(&self, own: &str) -> Option<Arc<Facts>> {
        self.state.read().seen.get(own).cloned()
    }

    /// The definition of a tool that may be used: the approved one, else the first one.
    pub fn baseline(&self, own: &str) -> Option<Pin> {
        self.state.read().baseline(own).cloned()
    }

    /// Replaces what people approved. Returns whether that changes anything.
    pub fn set_approved(&self, approved: HashMap<Box<str>, Vec<Pin>>) -> bool {
        let mut state = self.state.write();
        if state.approved == approved {
            return false;
        }
        state.approved = approved;
        state.recorded.clear();
        drop(state);
        self.revision.fetch_add(1, Ordering::AcqRel);
        true
    }
}

impl fmt::Debug for ServerPins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerPins").field("server", &self.server).finish_non_exhaustive()
    }
}

// === impl State ===

impl State {
    fn baseline(&self, own: &str) -> Option<&Pin> {
        self.approved.get(own).and_then(|all| all.last()).or_else(|| self.pinned.get(own))
    }

    /// Whether one more tool of this name may be remembered.
    fn has_room<T>(of: &HashMap<Box<str>, T>, own: &str) -> bool {
        of.contains_key(own) || (of.len() < MAX_PINS && own.len() <= MAX_NAME)
    }

    /// Pins a definition, without its text if there is no room for that.
    fn set_pin(&mut self, own: &str, pin: Pin) -> &Pin {
        let before = self.pinned.remove(own).and_then(|pin| pin.definition);
        let definition = self.keep(before.as_deref(), pin.definition);
        self.pinned.entry(own.into()).or_insert(Pin { definition, ..pin })
    }

    /// Remembers the newest definition, without its text if there is no room for that.
    fn set_seen(&mut self, own: &str, facts: &Arc<Facts>) {
        self.last = None;
        let before = self.seen.get(own).and_then(|seen| seen.definition.clone());
        let definition = self.keep(before.as_deref(), facts.definition.clone());
        let seen = if definition.is_some() == facts.definition.is_some() {
            Arc::clone(facts)
        } else {
            Arc::new(Facts { definition, ..Facts::clone(facts) })
        };
        self.seen.insert(own.into(), seen);
    }

    /// Takes the place of a text for another one; `None` if there is no room for it.
    fn keep(&mut self, before: Option<&str>, text: Option<Arc<str>>) -> Option<Arc<str>> {
        self.kept = self.kept.saturating_sub(before.map_or(0, str::len));
        let text = text.filter(|text| self.kept + text.len() <= MAX_DEFINITIONS)?;
        self.kept += text.len();
        Some(text)
    }

    /// Whether the newest known definition of a tool is this one.
    fn has_seen(&self, own: &str, facts: &Arc<Facts>) -> bool {
        self.seen.get(own).is_some_and(|seen| Arc::ptr_eq(seen, facts) || seen.is_short_of(facts))
    }
}

#[cfg(test)]
mod tests;
