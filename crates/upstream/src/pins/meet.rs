//! Meeting the definitions of a list: recording what is new, noticing what has changed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::time::Instant;
use toolgate_audit::Hash;
use toolgate_catalog::{body_fingerprint, is_renamed};
use toolgate_policy::Class;

use super::judge::judge;
use super::{Drift, Facts, MAX_RECORDED, Pin, PinMode, Reason, ServerPins, State, stored};

/// A tool of a list: the server's own name, and what is known of its definition.
pub type Met = (Box<str>, Arc<Facts>);

/// The context of a list.
pub struct Meeting<'m> {
    /// What happens to new and changed definitions.
    pub mode: PinMode,
    /// Whether these are all tools of the server.
    pub is_whole: bool,
    /// The risk class of a tool; the operator may have set it.
    pub class: &'m dyn Fn(&str, &Facts) -> Class,
}

/// Marks names that a list has twice with different definitions.
pub(crate) fn mark_ambiguous(met: &mut [Met]) {
    let mut first: HashMap<Box<str>, usize> = HashMap::new();
    let mut ambiguous = HashSet::new();
    for (index, (own, facts)) in met.iter().enumerate() {
        match first.get(own) {
            None => drop(first.insert(own.clone(), index)),
            Some(known) => {
                let same = met.get(*known).is_some_and(|(_, other)| {
                    other.fingerprint.is_some() && other.fingerprint == facts.fingerprint
                });
                if !same {
                    ambiguous.insert(own.clone());
                }
            }
        }
    }
    for (own, facts) in met.iter_mut().filter(|(own, _)| ambiguous.contains(own)) {
        tracing::debug!(tool = %own, "listed twice with different definitions");
        *facts = Arc::new(Facts { is_ambiguous: true, ..Facts::clone(facts) });
    }
}

impl ServerPins {
    /// The facts of a definition; those of the same text as before are kept.
    pub(crate) fn facts(&self, own: &str, raw: &str) -> Arc<Facts> {
        if let Some(known) = self.state.read().seen.get(own)
            && known.is_of(raw)
        {
            return Arc::clone(known);
        }
        Arc::new(Facts::of(own, raw))
    }

    /// Meets the tools of a list or of a page of one.
    pub fn meet(&self, met: &[Met], meeting: &Meeting<'_>) {
        if self.knows_all(met, meeting.is_whole) {
            return;
        }
        let mut record = Record::default();
        {
            let mut state = self.state.write();
            let gone = Gone::of(&state, met, meeting);
            for (own, facts) in met {
                if !state.has_seen(own, facts) {
                    record.is_judged_anew = true;
                    self.meet_one(&mut state, &gone, (own, facts), meeting, &mut record);
                }
            }
            if meeting.is_whole && !state.is_listed {
                state.is_listed = true;
                record.has_changed = true;
                record.keep.push(stored::listed(&self.server));
            }
        }
        if record.has_changed || record.is_judged_anew {
            self.revision.fetch_add(1, Ordering::AcqRel);
        }
        self.send(record);
    }

    fn knows_all(&self, met: &[Met], is_whole: bool) -> bool {
        let state = self.state.read();
        let is_known = |(own, facts): &Met| state.has_seen(own, facts);
        (state.is_listed || !is_whole) && met.iter().all(is_known)
    }

    fn meet_one(
        &self,
        state: &mut State,
        gone: &Gone,
        (own, facts): (&str, &Arc<Facts>),
        meeting: &Meeting<'_>,
        record: &mut Record,
    ) {
        let mode = meeting.mode;
        let before = state.seen.get(own).cloned();
        let was = before.as_deref().and_then(|before| judge(mode, state, own, before));
        let baseline = state.baseline(own).map(|pin| pin.fingerprint);
        let class = (meeting.class)(own, facts);
        let is_known = baseline.is_some();
        if !is_known && mode == PinMode::First && state.is_listed {
            let reason = gone.former_name(own, facts).map(Reason::Renamed);
            let reason = reason.or_else(|| is_dangerous(class).then_some(Reason::New(class)));
            // A rename stays one when the old name comes back.
            let stays = matches!(state.suspects.get(own), Some((known, Reason::Renamed(_)))
                if *known == facts.fingerprint);
            let has_room = State::has_room(&state.suspects, own);
            if let Some(reason) = reason.filter(|_| !stays && has_room) {
                state.suspects.insert(own.into(), (facts.fingerprint, reason));
            } else if !stays {
                state.suspects.remove(own);
            }
        }
        let follows = mode == PinMode::Off && baseline != facts.fingerprint;
        if (!is_known && mode == PinMode::First) || follows {
            record.keep.extend(self.pin(state, own, facts));
        }
        let reason = judge(mode, state, own, facts);
        let expected = Expected { baseline, was: was.as_ref(), was_seen: before.is_some() };
        let message = message(state, &expected, reason.as_ref(), facts);
        if let Some(message) = message.filter(|_| state.is_unrecorded(own, facts, reason.is_some()))
        {
            record.drifts.push(Drift {
                server: Arc::clone(&self.server),
                tool: own.into(),
                fingerprint: facts.fingerprint,
                class,
                is_quarantined: reason.is_some(),
                message,
                left_out: 0,
            });
        }
        if State::has_room(&state.seen, own) {
            state.set_seen(own, facts);
            record.has_changed = true;
            if before.is_none() {
                record.new.push((own.into(), Arc::clone(facts)));
            }
        }
    }

    /// Records the first definition of a tool, unless it waits for a person.
    fn pin(&self, state: &mut State, own: &str, facts: &Facts) -> Option<(Arc<str>, Arc<str>)> {
        let fingerprint = facts.fingerprint?;
        let is_held = facts.hidden.is_some() || facts.is_ambiguous;
        let has_room = State::has_room(&state.pinned, own);
        if is_held || !has_room || state.suspects.contains_key(own) {
            return None;
        }
        let pin = Pin { fingerprint, definition: facts.definition.clone() };
        let pin = state.set_pin(own, pin);
        Some(stored::pin(&self.server, own, pin))
    }

    fn send(&self, record: Record) {
        let Some(recorder) = self.recorder.get() else { return };
        if !record.keep.is_empty() {
            recorder.keep(record.keep);
        }
        for drift in record.drifts {
            let mut rows = self.rows.lock();
            let left_out = rows.renew(Instant::now());
            if rows.take() {
                drop(rows);
                recorder.record(Drift { left_out, ..drift });
            }
        }
        if record.has_changed {
            recorder.listed(&self.server, &record.new);
        }
    }
}

/// What a meeting leaves to be recorded.
#[derive(Default)]
struct Record {
    keep: Vec<(Arc<str>, Arc<str>)>,
    drifts: Vec<Drift>,
    /// Tools that were not seen before.
    new: Vec<Met>,
    /// What is known of the tools has changed.
    has_changed: bool,
    /// What is quarantined may have changed.
    is_judged_anew: bool,
}

/// Pinned tools that a list no longer has, by the fingerprint of everything but their names.
struct Gone(HashMap<String, (Arc<str>, Arc<str>)>);

impl Gone {
    fn of(state: &State, met: &[Met], meeting: &Meeting<'_>) -> Self {
        let is_new = |(own, _): &Met| state.baseline(own).is_none();
        if meeting.mode != PinMode::First || !state.is_listed || !met.iter().any(is_new) {
            return Self(HashMap::new());
        }
        let listed: HashSet<&str> = met.iter().map(|(own, _)| &**own).collect();
        let known = state
            .pinned
            .iter()
            .chain(state.approved.iter().filter_map(|(own, all)| Some((own, all.last()?))));
        let gone = known.filter(|(own, _)| !listed.contains(&***own)).filter_map(|(own, pin)| {
            let definition = pin.definition.clone()?;
            Some((body_fingerprint(&definition).ok()?, (Arc::from(&**own), definition)))
        });
        Self(gone.collect())
    }

    /// The name that a new tool had before.
    fn former_name(&self, own: &str, facts: &Facts) -> Option<Arc<str>> {
        if self.0.is_empty() {
            return None;
        }
        let definition = facts.definition.as_deref()?;
        let (old, known) = self.0.get(&body_fingerprint(definition).ok()?)?;
        (**old != *own && is_renamed(known, definition)).then(|| Arc::clone(old))
    }
}

/// Classes whose new tools wait for a person.
fn is_dangerous(class: Class) -> bool {
    matches!(class, Class::Execute | Class::Destructive | Class::Financial)
}

/// What was known of a tool before its definition was met.
struct Expected<'e> {
    baseline: Option<Hash>,
    was: Option<&'e Reason>,
    was_seen: bool,
}

/// What the audit states about a definition that was met; `None` if it is as expected.
fn message(
    state: &State,
    expected: &Expected<'_>,
    reason: Option<&Reason>,
    facts: &Facts,
) -> Option<String> {
    let Expected { baseline, was, was_seen } = *expected;
    let is_same = baseline.is_some() && baseline == facts.fingerprint;
    match reason {
        // Before the first complete list only what is wrong in itself is drift.
        Some(Reason::NotApproved) if !state.is_listed => None,
        Some(reason) => Some(format!("quarantined: {reason}")),
        None if was.is_some() && is_same => {
            Some("no longer quarantined: the definition is the approved one again".to_owned())
        }
        None if baseline.is_some() && !is_same => Some("the definition has changed".to_owned()),
        None if baseline.is_none() && state.is_listed && !was_seen => {
            Some("a new tool is listed".to_owned())
        }
        None => None,
    }
}

impl State {
    /// Whether the audit does not have this definition of a tool yet. A server that alternates
    /// between two definitions gets one row for each.
    fn is_unrecorded(&mut self, own: &str, facts: &Facts, is_quarantined: bool) -> bool {
        if !Self::has_room(&self.recorded, own) {
            return true;
        }
        let recorded = self.recorded.entry(own.into()).or_default();
        let row = (facts.fingerprint, is_quarantined);
        if recorded.contains(&row) {
            return false;
        }
        if recorded.len() < MAX_RECORDED {
            recorded.push(row);
        }
        true
    }
}
