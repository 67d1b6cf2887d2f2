//! A backend in memory: for tests, for benchmarks, and for running without an audit.
//!
//! Nothing survives the process, and writes fail only on request.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

use jiff::Timestamp;
use toolgate_audit::{CallId, Checkpoint, Draft, Row, RowKind};
use toolgate_policy::{
    Amount, Claim, Ended, Ledger, Ownership, Period, Receipt, Reservation, Taken, Unavailable,
    Usage, Yielded,
};

use crate::{
    Backend, Change, Document, Freeze, PolicyVersion, RowQuery, Snapshot, StoreError,
    StoreErrorKind, StoreStatus, StoredGrant, StoredPerson,
    backend::{
        AbandonedCall, BackendReader, BackendState, ChangeOutcome, Refund, Transaction,
        TransactionBody,
    },
    sync::{Mutex, MutexGuard},
};

/// Data in memory. Clones share it.
#[derive(Clone, Default)]
pub struct MemoryBackend(Arc<Mutex<Data>>);

#[derive(Default)]
struct Data {
    state: BackendState,
    rows: Vec<Row>,
    forgets_rows: bool,
    broken: bool,
    checkpoints: Vec<Checkpoint>,
    ledger: Ledger,
    open: HashMap<CallId, Open>,
    grants: BTreeMap<Arc<str>, StoredGrant>,
    people: BTreeMap<Arc<str>, StoredPerson>,
    policies: BTreeMap<Arc<str>, PolicyVersion>,
    /// The highest version of each policy, including removed ones.
    versions: HashMap<Arc<str>, u64>,
    freezes: BTreeMap<Arc<str>, Freeze>,
    kept: BTreeMap<(Arc<str>, Arc<str>), Document>,
}

/// A call that has not ended.
struct Open {
    seq: u64,
    receipt: Receipt,
    /// A round of it was sent.
    sent: bool,
    /// Since when it waits for its next round.
    waits: Option<Timestamp>,
}

impl MemoryBackend {
    /// Data without rows: `durability: off`.
    pub fn without_rows() -> Self {
        let memory = Self::default();
        memory.0.lock().forgets_rows = true;
        memory
    }

    /// Makes every write fail, or succeed again.
    pub fn set_broken(&self, broken: bool) {
        self.0.lock().broken = broken;
    }
}

impl Backend for MemoryBackend {
    fn transact(&mut self, work: &mut TransactionBody<'_>) -> Result<(), StoreError> {
        let mut data = self.0.lock();
        if data.broken {
            return Err(StoreError::new(StoreErrorKind::Full, "failure requested by a test"));
        }
        work(&mut *data)
    }

    fn reader(&self) -> Result<Box<dyn BackendReader>, StoreError> {
        Ok(Box::new(Self(Arc::clone(&self.0))))
    }
}

impl Transaction for Data {
    fn state(&mut self) -> Result<BackendState, StoreError> {
        Ok(self.state.clone())
    }

    fn may_admit(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn forgets_rows(&self) -> bool {
        self.forgets_rows
    }

    fn append(&mut self, row: &Row) -> Result<(), StoreError> {
        self.state.head.seq = row.seq;
        self.state.head.hash = row.hash;
        if !self.forgets_rows {
            self.rows.push(row.clone());
        }
        Ok(())
    }

    fn set_mark(&mut self, mark: Timestamp) -> Result<(), StoreError> {
        self.state.mark = mark;
        Ok(())
    }

    fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        self.state.checkpoint = Some((checkpoint.seq, checkpoint.time));
        if !self.forgets_rows {
            self.checkpoints.push(checkpoint.clone());
        }
        Ok(())
    }

    fn open(
        &mut self,
        call: CallId,
        seq: u64,
        reservations: &[Reservation],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let receipt = self.ledger.admit(reservations, now);
        let receipt = receipt
            .map_err(|full| StoreError::new(StoreErrorKind::Internal, full.rule.to_string()))?;
        self.open.insert(call, Open { seq, receipt, sent: false, waits: None });
        Ok(())
    }

    fn settle(&mut self, call: CallId, back: Refund) -> Result<(), StoreError> {
        match self.open.remove(&call) {
            Some(open) if back == Refund::All && !open.sent => {
                self.ledger.give_back(open.receipt);
            }
            Some(open) => self.ledger.settle(open.receipt),
            None => {}
        }
        Ok(())
    }

    fn park(&mut self, call: CallId, now: Timestamp) -> Result<(), StoreError> {
        if let Some(open) = self.open.get_mut(&call) {
            (open.sent, open.waits) = (true, Some(now));
        }
        Ok(())
    }

    fn resume(&mut self, call: CallId) -> Result<Option<u64>, StoreError> {
        let open = self.open.get_mut(&call);
        Ok(open.and_then(|open| open.waits.take().map(|_| open.seq)))
    }

    fn waiting_since(&mut self, then: Timestamp) -> Result<Vec<AbandonedCall>, StoreError> {
        let late = |open: &Open| open.waits.is_some_and(|since| since <= then);
        let calls = self.open.iter().filter(|(_, open)| late(open)).take(1_000);
        let abandoned = calls.map(|(call_id, open)| {
            let row = self.rows.iter().find(|row| row.seq == open.seq);
            let none = || Draft::new(RowKind::Intent, Timestamp::UNIX_EPOCH);
            let intent = row.map_or_else(none, |row| row.draft.clone());
            AbandonedCall { call_id: *call_id, intent }
        });
        Ok(abandoned.collect())
    }

    fn own(
        &mut self,
        yielded: &Yielded,
        grant: &str,
        identity: Option<&str>,
        now: Timestamp,
    ) -> Result<Ownership, StoreError> {
        Ok(self.ledger.own(yielded, grant, identity, now))
    }

    fn end(&mut self, ended: &Ended) -> Result<(), StoreError> {
        self.ledger.end(&ended.server, &ended.kind, &ended.value);
        Ok(())
    }

    fn change(&mut self, change: &Change, now: Timestamp) -> Result<ChangeOutcome, StoreError> {
        let changed = self.make(change, now);
        if changed == ChangeOutcome::Made && change.is_setup() {
            self.state.generation += 1;
        }
        Ok(changed)
    }

    fn touch(&mut self, grant: &str, now: Timestamp) -> Result<(), StoreError> {
        if let Some(grant) = self.grants.get_mut(grant) {
            grant.last_use = grant.last_use.max(Some(now));
        }
        Ok(())
    }

    fn abandoned(&mut self, _: Timestamp) -> Result<Vec<AbandonedCall>, StoreError> {
        Ok(Vec::new())
    }

    fn prune(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.ledger.prune(now);
        Ok(())
    }
}

impl Data {
    fn make(&mut self, change: &Change, now: Timestamp) -> ChangeOutcome {
        match change {
            Change::PutGrant(grant) => {
                let mut others = self.grants.values().filter(|other| other.id != grant.id);
                if others.any(|other| other.label == grant.label) {
                    return ChangeOutcome::NameTaken(grant.label.to_string());
                }
                self.grants.insert(Arc::clone(&grant.id), (**grant).clone());
            }
            Change::RevokeGrant(id) => match self.grants.get_mut(id) {
                Some(grant) => grant.revoked = grant.revoked.or(Some(now)),
                None => return ChangeOutcome::Unknown(id.to_string()),
            },
            Change::PutPerson(person) => {
                let mut others = self.people.values().filter(|other| other.id != person.id);
                if others.any(|other| other.name == person.name) {
                    return ChangeOutcome::NameTaken(person.name.to_string());
                }
                self.people.insert(Arc::clone(&person.id), (**person).clone());
            }
            Change::RevokePerson(id) => match self.people.get_mut(id) {
                Some(person) => person.revoked = person.revoked.or(Some(now)),
                None => return ChangeOutcome::Unknown(id.to_string()),
            },
            Change::PutPolicy { name, document } => {
                let version = self.versions.entry(Arc::clone(name)).or_default();
                *version += 1;
                let (version, created) = (*version, now);
                let (name, document) = (Arc::clone(name), Arc::clone(document));
                let policy = PolicyVersion { name, version, document, created };
                self.policies.insert(Arc::clone(&policy.name), policy);
            }
            Change::RemovePolicy(name) => {
                return gone(name, self.policies.remove(name).is_some());
            }
            Change::Freeze(freeze) => {
                self.freezes.insert(Arc::clone(&freeze.id), freeze.clone());
            }
            Change::Unfreeze(id) => return gone(id, self.freezes.remove(id).is_some()),
            Change::AcceptClock => {
                let from = std::mem::replace(&mut self.state.mark, now);
                self.ledger.rebase(from, now);
                for open in self.open.values_mut() {
                    open.waits = open.waits.map(|_| now);
                }
            }
            Change::PutDocument(kept) => {
                let key = (Arc::clone(&kept.space), Arc::clone(&kept.key));
                self.kept.insert(key, kept.clone());
            }
            Change::RemoveDocument(space, key) => {
                let fixture = (Arc::clone(space), Arc::clone(key));
                return gone(key, self.kept.remove(&fixture).is_some());
            }
            Change::ReplaceDocuments { space, keep, forget } => {
                for key in forget {
                    self.kept.remove(&(Arc::clone(space), Arc::clone(key)));
                }
                for (key, json) in keep {
                    let (space, key) = (Arc::clone(space), Arc::clone(key));
                    let kept = Document { space, key, json: Arc::clone(json) };
                    self.kept.insert((Arc::clone(&kept.space), Arc::clone(&kept.key)), kept);
                }
            }
        }
        ChangeOutcome::Made
    }
}

fn gone(name: &str, was_there: bool) -> ChangeOutcome {
    if was_there { ChangeOutcome::Made } else { ChangeOutcome::Unknown(name.to_owned()) }
}

impl Usage for Data {
    fn used(&self, counter: &str, period: Period) -> Result<Amount, Unavailable> {
        self.ledger.used(counter, period)
    }
    fn taken(&self, counter: &str, after: Timestamp) -> Result<Vec<Taken>, Unavailable> {
        self.ledger.taken(counter, after)
    }
    fn in_flight(&self, counter: &str) -> Result<u64, Unavailable> {
        self.ledger.in_flight(counter)
    }
    fn last_admitted(&self, call: &str) -> Result<Option<Timestamp>, Unavailable> {
        self.ledger.last_admitted(call)
    }
    fn owns(&self, claim: &Claim<'_>) -> Result<bool, Unavailable> {
        self.ledger.owns(claim)
    }
}

impl MemoryBackend {
    fn data(&self) -> MutexGuard<'_, Data> {
        self.0.lock()
    }
}

impl Usage for MemoryBackend {
    fn used(&self, counter: &str, period: Period) -> Result<Amount, Unavailable> {
        self.data().used(counter, period)
    }
    fn taken(&self, counter: &str, after: Timestamp) -> Result<Vec<Taken>, Unavailable> {
        self.data().taken(counter, after)
    }
    fn in_flight(&self, counter: &str) -> Result<u64, Unavailable> {
        self.data().in_flight(counter)
    }
    fn last_admitted(&self, call: &str) -> Result<Option<Timestamp>, Unavailable> {
        self.data().last_admitted(call)
    }
    fn owns(&self, claim: &Claim<'_>) -> Result<bool, Unavailable> {
        self.data().owns(claim)
    }
}

impl BackendReader for MemoryBackend {
    fn snapshot(&mut self) -> Result<Snapshot, StoreError> {
        let data = self.data();
        Ok(Snapshot {
            generation: data.state.generation,
            grants: data.grants.values().cloned().collect(),
            people: data.people.values().cloned().collect(),
            policies: data.policies.values().cloned().collect(),
            freezes: data.freezes.values().cloned().collect(),
        })
    }

    fn documents(&mut self, space: &str) -> Result<Vec<Document>, StoreError> {
        let data = self.data();
        Ok(data.kept.values().filter(|kept| &*kept.space == space).cloned().collect())
    }

    fn rows(&mut self, page: &RowQuery) -> Result<Vec<Row>, StoreError> {
        let data = self.data();
        let wanted = |row: &&Row| {
            let draft = &row.draft;
            let is = |wanted: &Option<String>, value: &Option<Arc<str>>| {
                wanted.is_none() || wanted.as_deref() == value.as_deref()
            };
            row.seq > page.after
                && is(&page.grant, &draft.grant)
                && is(&page.tool, &draft.tool)
                && (page.decision.is_none() || page.decision == draft.decision)
        };
        Ok(data.rows.iter().filter(wanted).take(page.limit.min(1_000)).cloned().collect())
    }

    fn call_rows(&mut self, call: CallId) -> Result<Vec<Row>, StoreError> {
        let data = self.data();
        Ok(data.rows.iter().filter(|row| row.draft.call_id == Some(call)).cloned().collect())
    }

    fn checkpoints(&mut self) -> Result<Vec<Checkpoint>, StoreError> {
        Ok(self.data().checkpoints.clone())
    }

    fn status(&mut self) -> Result<StoreStatus, StoreError> {
        let data = self.data();
        Ok(StoreStatus {
            head: data.state.head,
            checkpoint: data.checkpoints.last().cloned(),
            mark: data.state.mark,
            open: u64::try_from(data.open.len()).unwrap_or(u64::MAX),
        })
    }

    fn mark(&mut self) -> Result<Timestamp, StoreError> {
        Ok(self.data().state.mark)
    }

    fn usage(&self) -> &dyn Usage {
        self
    }
}

impl fmt::Debug for MemoryBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryBackend")
    }
}

#[cfg(test)]
mod tests;
