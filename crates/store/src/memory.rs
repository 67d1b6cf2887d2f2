//! A backend in memory: for tests, for benchmarks, and for running without an audit.
//!
//! Nothing survives the process, and writes fail only on request.

mod approvals;
mod reader;
mod setup;

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

use jiff::Timestamp;
use toolgate_audit::{CallId, Checkpoint, Draft, Row, RowKind};
use toolgate_policy::{
    Amount, Claim, Digest, Ended, Ledger, Ownership, Period, Receipt, Reservation, Taken,
    Unavailable, Usage, Yielded,
};

use self::approvals::Approvals;
use crate::{
    Backend, Change, Document, Freeze, KEPT_APPROVALS, PolicyVersion, StandingException,
    StoreError, StoreErrorKind, StoredApproval, StoredGrant, StoredPerson,
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
    /// Every version of each policy, including removed ones.
    versions: HashMap<Arc<str>, Vec<PolicyVersion>>,
    freezes: BTreeMap<Arc<str>, Freeze>,
    kept: BTreeMap<(Arc<str>, Arc<str>), Document>,
    approvals: Approvals,
    exceptions: BTreeMap<Arc<str>, StandingException>,
    /// The last use of grants that are not stored.
    uses: BTreeMap<Arc<str>, Timestamp>,
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
        } else {
            let at = self.uses.entry(grant.into()).or_insert(now);
            *at = now.max(*at);
        }
        Ok(())
    }

    fn abandoned(&mut self, _: Timestamp) -> Result<Vec<AbandonedCall>, StoreError> {
        Ok(Vec::new())
    }

    fn live_approval(&mut self, binding: &Digest) -> Result<Option<StoredApproval>, StoreError> {
        Ok(self.approvals.live(binding))
    }

    fn approval(&mut self, id: &str) -> Result<Option<StoredApproval>, StoreError> {
        Ok(self.approvals.get(id))
    }

    fn put_approval(&mut self, approval: &StoredApproval) -> Result<(), StoreError> {
        self.approvals.put(approval);
        Ok(())
    }

    fn forget_live(&mut self, id: &str) -> Result<(), StoreError> {
        self.approvals.forget_live(id);
        Ok(())
    }

    fn due_approvals(&mut self, now: Timestamp) -> Result<Vec<StoredApproval>, StoreError> {
        Ok(self.approvals.due(now))
    }

    fn due_exceptions(&mut self, now: Timestamp) -> Result<Vec<StandingException>, StoreError> {
        let due = self.exceptions.values().filter(|exception| exception.expires <= now);
        Ok(due.take(1_000).cloned().collect())
    }

    fn pending_of(&mut self, grant: &str) -> Result<(u64, u64), StoreError> {
        Ok(self.approvals.pending_of(grant))
    }

    fn note_delivery(
        &mut self,
        approval: &str,
        next: Option<(u32, Timestamp)>,
    ) -> Result<(), StoreError> {
        self.approvals.note_delivery(approval, next);
        Ok(())
    }

    fn approvals_changed(&mut self) -> Result<(), StoreError> {
        self.approvals.version += 1;
        Ok(())
    }

    fn approvals_version(&self) -> u64 {
        self.approvals.version
    }

    fn prune(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.ledger.prune(now);
        self.approvals.prune(now.checked_sub(KEPT_APPROVALS).unwrap_or(Timestamp::MIN));
        Ok(())
    }
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

impl fmt::Debug for MemoryBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryBackend")
    }
}

#[cfg(test)]
mod tests;
