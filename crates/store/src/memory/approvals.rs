//! Approvals in memory.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use jiff::Timestamp;
use toolgate_policy::{ApprovalState, Digest};

use crate::{ApprovalQuery, DueNotice, HeldCall, LISTED_BYTES, PendingApprovals, StoredApproval};

/// All approvals.
#[derive(Default)]
pub(super) struct Approvals {
    all: BTreeMap<Arc<str>, StoredApproval>,
    live: HashMap<Digest, Arc<str>>,
    /// Those whose notice is due, with the number of attempts.
    notices: BTreeMap<Arc<str>, (u32, Timestamp)>,
    pub(super) version: u64,
}

impl Approvals {
    pub(super) fn live(&self, binding: &Digest) -> Option<StoredApproval> {
        self.live.get(binding).and_then(|id| self.all.get(id)).cloned()
    }

    pub(super) fn get(&self, id: &str) -> Option<StoredApproval> {
        self.all.get(id).cloned()
    }

    pub(super) fn put(&mut self, approval: &StoredApproval) {
        let id = Arc::clone(&approval.id);
        if !self.all.contains_key(&id) {
            self.notices.insert(Arc::clone(&id), (0, approval.created));
        }
        match approval.state {
            ApprovalState::Expired | ApprovalState::Consumed => {
                self.live.remove(&approval.binding);
            }
            _ => {
                self.live.insert(approval.binding, Arc::clone(&id));
            }
        }
        self.all.insert(id, approval.clone());
    }

    pub(super) fn forget_live(&mut self, id: &str) {
        self.live.retain(|_, live| **live != *id);
    }

    pub(super) fn due(&self, now: Timestamp) -> Vec<StoredApproval> {
        let ids: BTreeSet<&Arc<str>> = self.live.values().collect();
        let live = ids.into_iter().filter_map(|id| self.all.get(id));
        live.filter(|approval| approval.expires <= now).take(1_000).cloned().collect()
    }

    pub(super) fn pending_of(&self, grant: &str) -> (u64, u64) {
        let own = self.pending().filter(|approval| *approval.call.grant == *grant);
        own.fold((0, 0), |(count, bytes), approval| {
            let more = approval.arguments.as_ref().map_or(0, |text| text.len());
            (count + 1, bytes + u64::try_from(more).unwrap_or(u64::MAX))
        })
    }

    pub(super) fn note_delivery(&mut self, id: &str, next: Option<(u32, Timestamp)>) {
        match next {
            Some(next) => drop(self.notices.insert(id.into(), next)),
            None => drop(self.notices.remove(id)),
        }
    }

    pub(super) fn select(&self, query: &ApprovalQuery) -> Vec<StoredApproval> {
        let mut selected: Vec<&StoredApproval> = self.all.values().collect();
        selected.sort_by_key(|approval| (approval.created, Arc::clone(&approval.id)));
        let selected = selected.into_iter().filter(|approval| {
            let place = (approval.created, Arc::clone(&approval.id));
            query.state.is_none_or(|state| approval.state == state)
                && query.grant.as_ref().is_none_or(|grant| approval.call.grant == *grant)
                && query.after.as_ref().is_none_or(|after| place > *after)
        });
        let mut bytes = 0;
        let fitting = selected.take(query.limit).take_while(|approval| {
            let fits = bytes < LISTED_BYTES;
            bytes += approval.argument_bytes();
            fits
        });
        fitting.cloned().collect()
    }

    pub(super) fn last_consumed(&self, like: &HeldCall) -> Option<StoredApproval> {
        let same = |approval: &&StoredApproval| {
            let call = &approval.call;
            approval.state == ApprovalState::Consumed
                && (&call.grant, &call.server, &call.tool)
                    == (&like.grant, &like.server, &like.tool)
        };
        self.all.values().filter(same).max_by_key(|approval| approval.ended).cloned()
    }

    pub(super) fn counted(&self) -> PendingApprovals {
        let oldest = self.pending().map(|approval| approval.created).min();
        let count = u64::try_from(self.pending().count()).unwrap_or(u64::MAX);
        PendingApprovals { count, oldest }
    }

    pub(super) fn deliveries(&self, now: Timestamp, limit: usize) -> Vec<DueNotice> {
        let due = self.notices.iter().filter(|(_, (_, at))| *at <= now);
        let mut due: Vec<_> = due.map(|(id, (attempts, at))| (*at, id, *attempts)).collect();
        due.sort_unstable();
        // The grants take turns.
        let mut turns: HashMap<&str, usize> = HashMap::new();
        let pending = due.into_iter().filter_map(|(_, id, attempts)| {
            let approval = self.all.get(id)?;
            let is_pending = approval.state == ApprovalState::Pending;
            let turn = turns.entry(&approval.call.grant).or_default();
            *turn += usize::from(is_pending);
            is_pending.then(|| (*turn, DueNotice { approval: approval.clone(), attempts }))
        });
        let mut pending: Vec<(usize, DueNotice)> = pending.collect();
        pending.sort_by_key(|(turn, _)| *turn);
        pending.into_iter().take(limit).map(|(_, notice)| notice).collect()
    }

    /// Times move with an accepted clock.
    pub(super) fn rebase(&mut self, from: Timestamp, to: Timestamp) {
        let step = to.duration_since(from);
        for approval in self.all.values_mut().filter(|approval| !approval.state.is_over()) {
            approval.expires = approval.expires.checked_add(step).unwrap_or(approval.expires);
        }
    }

    pub(super) fn prune(&mut self, then: Timestamp) {
        self.all.retain(|_, approval| approval.ended.is_none_or(|ended| ended > then));
        let Self { all, notices, .. } = self;
        notices.retain(|id, _| all.contains_key(id));
    }

    fn pending(&self) -> impl Iterator<Item = &StoredApproval> {
        self.all.values().filter(|approval| approval.state == ApprovalState::Pending)
    }
}
