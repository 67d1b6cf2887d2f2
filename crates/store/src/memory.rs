//! A backend in memory: for tests, for benchmarks, and for running without an audit.
//!
//! Nothing survives the process, and writes fail only on request.

mod approvals;
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
    ApprovalQuery, Backend, Change, Document, DueNotice, Freeze, GrantUse, HeldCall,
    KEPT_APPROVALS, MAX_ROWS, PendingApprovals, PolicyVersion, RowQuery, Snapshot,
    StandingException, StoreError, StoreErrorKind, StoreStatus, StoredApproval, StoredGrant,
    StoredPerson,
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
            exceptions: data.exceptions.values().cloned().collect(),
            uses: data
                .uses
                .iter()
                .map(|(id, at)| GrantUse { id: Arc::clone(id), at: *at })
                .collect(),
        })
    }

    fn policy_versions(&mut self, name: &str) -> Result<Vec<PolicyVersion>, StoreError> {
        Ok(self.data().versions.get(name).cloned().unwrap_or_default())
    }

    fn documents(&mut self, space: &str) -> Result<Vec<Document>, StoreError> {
        let data = self.data();
        Ok(data.kept.values().filter(|kept| &*kept.space == space).cloned().collect())
    }

    fn rows(&mut self, page: &RowQuery) -> Result<Vec<Row>, StoreError> {
        let data = self.data();
        let limit = page.limit.min(MAX_ROWS);
        let matching = data.rows.iter().filter(|row| page.matches(row));
        Ok(if page.newest_first {
            matching.rev().take(limit).cloned().collect()
        } else {
            matching.take(limit).cloned().collect()
        })
    }

    fn count_rows(&mut self, query: &RowQuery) -> Result<u64, StoreError> {
        let count = self.data().rows.iter().filter(|row| query.matches(row)).count();
        Ok(u64::try_from(count).unwrap_or(u64::MAX))
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

    fn approval(&mut self, id: &str) -> Result<Option<StoredApproval>, StoreError> {
        Ok(self.data().approvals.get(id))
    }

    fn approvals(&mut self, query: &ApprovalQuery) -> Result<Vec<StoredApproval>, StoreError> {
        Ok(self.data().approvals.select(query))
    }

    fn last_consumed(&mut self, like: &HeldCall) -> Result<Option<StoredApproval>, StoreError> {
        Ok(self.data().approvals.last_consumed(like))
    }

    fn pending_approvals(&mut self) -> Result<PendingApprovals, StoreError> {
        Ok(self.data().approvals.counted())
    }

    fn due_deliveries(
        &mut self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueNotice>, StoreError> {
        Ok(self.data().approvals.deliveries(now, limit))
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
