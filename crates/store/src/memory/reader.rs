//! Reading the data in memory.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate_audit::{CallId, Checkpoint, Row};
use toolgate_policy::{Amount, Claim, Period, Taken, Unavailable, Usage};

use super::MemoryBackend;
use crate::{
    ApprovalQuery, Document, DueNotice, GrantUse, HeldCall, MAX_ROWS, PendingApprovals,
    PolicyVersion, RowQuery, Snapshot, StoreError, StoreStatus, StoredApproval,
    backend::BackendReader,
};

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
