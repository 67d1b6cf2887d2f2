//! One transaction.

use std::{cell::RefCell, collections::HashMap};

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, ToSql, params};
use toolgate_audit::{CallId, ChainHead, Checkpoint, Draft, Row, RowKind};
use toolgate_policy::{
    Amount, Claim, Digest, Ended, Ownership, Period, Reservation, Take, Taken, Unavailable, Usage,
    Yielded,
};
use toolgate_store::{
    Change, KEPT_APPROVALS, StandingException, StoreError, StoredApproval,
    backend::{AbandonedCall, BackendState, ChangeOutcome, Refund, Transaction},
};

use super::counters::{Receipt, Stored};
use crate::{
    approvals,
    error::{OrStoreError as _, damaged},
    open_calls::OpenCallMarks,
    owner::Owner,
    row::{self, number, to_head},
    setup,
    sql::{self, execute},
    sync::SyncMonitor,
    time::{mark, micros, timestamp},
    usage::{SqliteUsage, used_of},
};

/// The maximum number of abandoned calls that one transaction ends.
pub(crate) const ABANDONED: i64 = 1_000;
/// So many rows are added to `story` at once.
const STORY: u64 = 256;

/// One transaction.
pub(crate) struct SqliteTransaction<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) owner: &'a Owner,
    pub(super) watch: &'a SyncMonitor,
    pub(crate) receipts: &'a HashMap<CallId, Receipt>,
    pub(crate) opened: Vec<(CallId, Receipt)>,
    pub(crate) settled: Vec<CallId>,
    /// Calls that this transaction has inserted into `open`.
    pub(crate) noted: Vec<CallId>,
    pub(crate) marks: OpenCallMarks,
    /// Whether the last span belongs to this process.
    pub(crate) is_last_owner: bool,
    /// Sequence number of the last row.
    pub(crate) head: u64,
    /// Sequence number of the last row that `story` contains.
    pub(super) told: u64,
    /// The calendar counter that was read last; it is read several times.
    pub(crate) counter: RefCell<Option<(String, Stored)>>,
    pub(super) wrote: bool,
    /// The version of the approvals.
    pub(super) approvals: u64,
}

impl SqliteTransaction<'_> {
    pub(crate) fn execute(
        &mut self,
        sql: &str,
        values: &[&dyn ToSql],
    ) -> Result<usize, StoreError> {
        self.wrote = true;
        execute(self.connection, sql, values)
    }

    pub(crate) fn used(&self) -> SqliteUsage<'_> {
        SqliteUsage(self.connection)
    }

    /// Adds rows to `story`, once there are many.
    pub(super) fn extend_story(&mut self) -> Result<(), StoreError> {
        if self.head.saturating_sub(self.told) < STORY {
            return Ok(());
        }
        self.execute(sql::STORY_ADD, &[&number(self.told)])?;
        self.execute(sql::STORY_TOLD, &[&number(self.head)]).map(drop)
    }

    /// Open calls, with their intents.
    fn open_calls(
        &self,
        sql: &str,
        values: &[&dyn ToSql],
    ) -> Result<Vec<AbandonedCall>, StoreError> {
        let mut statement = self.connection.prepare_cached(sql).or_store_error()?;
        let calls =
            statement.query_map(values, |row| Ok((row.get(0)?, row.get(1)?))).or_store_error()?;
        let calls: Vec<([u8; 16], i64)> = calls.collect::<Result<_, _>>().or_store_error()?;
        calls.into_iter().map(|(call, seq)| self.with_intent(CallId(call), seq)).collect()
    }

    pub(crate) fn with_intent(
        &self,
        call_id: CallId,
        seq: i64,
    ) -> Result<AbandonedCall, StoreError> {
        let mut statement = self.connection.prepare_cached(sql::ROW_AT).or_store_error()?;
        let row = statement.query_row([seq], |row| Ok(row::stored(row))).optional();
        let intent = row.or_store_error()?.and_then(|stored| stored.draft.ok());
        // An intent that was tampered with still ends; `verify` reports it.
        let none = || Draft::new(RowKind::Intent, Timestamp::UNIX_EPOCH);
        Ok(AbandonedCall { call_id, intent: intent.unwrap_or_else(none) })
    }
}

impl Transaction for SqliteTransaction<'_> {
    fn state(&mut self) -> Result<BackendState, StoreError> {
        let mut statement = self.connection.prepare_cached(sql::BEGIN).or_store_error()?;
        let mut rows = statement.query([]).or_store_error()?;
        let Some(row) = rows.next().or_store_error()? else { return Err(damaged("state")) };
        let whole = |number: i64| u64::try_from(number).unwrap_or_default();
        let owner: Option<i64> = row.get(3).or_store_error()?;
        self.is_last_owner = owner == Some(self.owner.id);
        let head = match row.get::<_, Option<i64>>(4).or_store_error()? {
            Some(seq) => {
                to_head(seq, row.get_ref(5).or_store_error()?.as_blob().unwrap_or_default())?
            }
            None => ChainHead::default(),
        };
        self.head = head.seq;
        self.approvals = whole(row.get(8).or_store_error()?);
        self.told = whole(row.get(2).or_store_error()?).min(head.seq);
        let checkpoint = match row.get::<_, Option<i64>>(6).or_store_error()? {
            Some(seq) => {
                let time = timestamp(row.get(7).or_store_error()?);
                Some((whole(seq), time.ok_or_else(|| damaged("checkpoint"))?))
            }
            None => None,
        };
        Ok(BackendState {
            head,
            mark: mark(row.get(0).or_store_error()?),
            generation: whole(row.get(1).or_store_error()?),
            checkpoint,
        })
    }

    fn may_admit(&self) -> Result<(), StoreError> {
        self.watch.may_admit()
    }

    fn append(&mut self, row: &Row) -> Result<(), StoreError> {
        self.wrote = true;
        let mut statement = self.connection.prepare_cached(sql::APPEND).or_store_error()?;
        row::append(&mut statement, row).or_store_error()?;
        self.head = row.seq;
        Ok(())
    }

    fn set_mark(&mut self, mark: Timestamp) -> Result<(), StoreError> {
        self.execute(sql::SET_MARK, &[&micros(mark)]).map(drop)
    }

    fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        let Checkpoint { seq, hash, time, signature } = checkpoint;
        let signature = signature.as_slice();
        let values: [&dyn ToSql; 4] = [&number(*seq), &hash.0, &micros(*time), &signature];
        self.execute(sql::CHECKPOINT_ADD, &values).map(drop)
    }

    fn open(
        &mut self,
        call: CallId,
        seq: u64,
        reservations: &[Reservation],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.begin(seq)?;
        let ticks = self.marks.ticks;
        let (noted, taken, seen_before) = (false, Vec::new(), None);
        let mut receipt = Receipt { seq, ticks, noted, at: now, taken, seen_before };
        for Reservation { key, take, .. } in reservations {
            let before = self.take(call, key, take, now)?;
            if let (Some((at, within)), None) = (before, &receipt.seen_before) {
                receipt.seen_before = Some((key.clone(), at, within));
            }
            receipt.taken.push((key.clone(), take.clone()));
        }
        self.opened.push((call, receipt));
        Ok(())
    }

    fn settle(&mut self, call: CallId, back: Refund) -> Result<(), StoreError> {
        let receipts = self.receipts;
        let receipt = receipts.get(&call);
        let noted = receipt.is_none_or(|receipt| receipt.noted) || self.noted.contains(&call);
        if noted {
            if self.execute(sql::OPEN_END, &[&call.0])? == 0 {
                return Ok(());
            }
            self.execute(sql::TASK_END, &[&call.0])?;
        }
        let flies = |receipt: &Receipt| {
            receipt.taken.iter().any(|(_, take)| matches!(take, Take::InFlight { .. }))
        };
        if receipt.is_none_or(flies) {
            self.execute(sql::FLIGHT_END, &[&call.0])?;
        }
        if let (Refund::All, Some(receipt)) = (back, receipt) {
            self.give_back(call, receipt)?;
        }
        self.settled.push(call);
        Ok(())
    }

    fn own(
        &mut self,
        yielded: &Yielded,
        grant: &str,
        identity: Option<&str>,
        now: Timestamp,
    ) -> Result<Ownership, StoreError> {
        let Yielded { server, kind, value, keep, shared, by_identity } = yielded;
        let until = keep.after(now);
        let identity = identity.filter(|_| *by_identity).map(str::to_owned);
        let known = self.used().owned(server, kind, value)?.filter(|owned| owned.until > now);
        let (mut grants, owner, until) = match known {
            None => (Vec::new(), identity, until),
            Some(known) => {
                let same = identity.is_some() && known.identity == identity;
                let mine = known.grants.iter().any(|known| known == grant) || same;
                if !mine && !shared {
                    return Ok(Ownership::Conflict);
                }
                (known.grants, known.identity, known.until.max(until))
            }
        };
        if !grants.iter().any(|known| known == grant) {
            grants.push(grant.to_owned());
        }
        let grants = setup::list(&grants)?;
        let until = micros(until);
        self.execute(sql::OWNED_WRITE, &[server, kind, value, &grants, &owner, &until])?;
        Ok(Ownership::Recorded)
    }

    fn end(&mut self, ended: &Ended) -> Result<(), StoreError> {
        self.execute(sql::OWNED_END, &[&ended.server, &ended.kind, &ended.value]).map(drop)
    }

    fn change(&mut self, change: &Change, now: Timestamp) -> Result<ChangeOutcome, StoreError> {
        self.wrote = true;
        self.counter.take();
        let changed = setup::change(self.connection, change, now)?;
        if changed == ChangeOutcome::Made && change.is_setup() {
            self.execute(sql::GROW_GENERATION, &[])?;
        }
        Ok(changed)
    }

    fn touch(&mut self, grant: &str, now: Timestamp) -> Result<(), StoreError> {
        let now = micros(now);
        if self.execute(sql::GRANT_TOUCH, &[&grant, &now])? == 0 {
            self.execute(sql::GRANT_USE, &[&grant, &now])?;
        }
        Ok(())
    }

    fn continue_as_task(
        &mut self,
        call: CallId,
        task: &str,
        until: Timestamp,
    ) -> Result<(), StoreError> {
        self.note_task(call, task, until)
    }

    fn left_as_task(&mut self, task: &str) -> Result<Vec<AbandonedCall>, StoreError> {
        self.calls_of_task(task)
    }

    fn abandoned(&mut self, now: Timestamp) -> Result<Vec<AbandonedCall>, StoreError> {
        self.insert_abandoned()?;
        let mut statement = self.connection.prepare_cached(sql::OPEN_OWNERS).or_store_error()?;
        let owners = statement.query_map([self.owner.id], |row| row.get(0)).or_store_error()?;
        let owners: Vec<i64> = owners.collect::<Result<_, _>>().or_store_error()?;
        let mut abandoned = Vec::new();
        for owner in owners.into_iter().filter(|owner| self.owner.is_dead(*owner)) {
            let now = micros(now);
            abandoned.extend(self.open_calls(sql::OPEN_OF_OWNER, &[&owner, &ABANDONED, &now])?);
        }
        Ok(abandoned)
    }

    fn park(&mut self, call: CallId, now: Timestamp) -> Result<(), StoreError> {
        // Without a receipt nothing can be refunded.
        self.settled.push(call);
        let (receipts, now) = (self.receipts, micros(now));
        match receipts.get(&call) {
            Some(receipt) => {
                let (me, seq) = (self.owner.id, number(receipt.seq));
                self.execute(sql::OPEN_WAIT, &[&call.0, &me, &seq, &now]).map(drop)
            }
            None => self.execute(sql::OPEN_PARK, &[&call.0, &now]).map(drop),
        }
    }

    fn resume(&mut self, call: CallId) -> Result<Option<u64>, StoreError> {
        self.wrote = true;
        let mut statement = self.connection.prepare_cached(sql::OPEN_RESUME).or_store_error()?;
        let seq = statement.query_row(params![call.0, self.owner.id], |row| row.get(0)).optional();
        let seq: Option<i64> = seq.or_store_error()?;
        Ok(seq.map(|seq| u64::try_from(seq).unwrap_or_default()))
    }

    fn waiting_since(&mut self, then: Timestamp) -> Result<Vec<AbandonedCall>, StoreError> {
        self.open_calls(sql::OPEN_WAITING, &[&micros(then), &ABANDONED])
    }

    fn live_approval(&mut self, binding: &Digest) -> Result<Option<StoredApproval>, StoreError> {
        approvals::one(self.connection, sql::APPROVAL_LIVE, &[&binding.0])
    }

    fn approval(&mut self, id: &str) -> Result<Option<StoredApproval>, StoreError> {
        approvals::one(self.connection, sql::APPROVAL_GET, &[&id])
    }

    fn put_approval(&mut self, approval: &StoredApproval) -> Result<(), StoreError> {
        self.wrote = true;
        approvals::put(self.connection, approval)
    }

    fn approvals_changed(&mut self) -> Result<(), StoreError> {
        self.wrote = true;
        self.approvals = approvals::grow(self.connection)?;
        Ok(())
    }

    fn forget_live(&mut self, id: &str) -> Result<(), StoreError> {
        self.execute(sql::APPROVAL_FORGET, &[&id]).map(drop)
    }

    fn due_approvals(&mut self, now: Timestamp) -> Result<Vec<StoredApproval>, StoreError> {
        approvals::expired(self.connection, now)
    }

    fn due_exceptions(&mut self, now: Timestamp) -> Result<Vec<StandingException>, StoreError> {
        approvals::due_exceptions(self.connection, now)
    }

    fn pending_of(&mut self, grant: &str) -> Result<(u64, u64), StoreError> {
        approvals::pending_of(self.connection, grant)
    }

    fn note_delivery(
        &mut self,
        approval: &str,
        next: Option<(u32, Timestamp)>,
    ) -> Result<(), StoreError> {
        self.wrote = true;
        approvals::note_delivery(self.connection, approval, next)
    }

    fn approvals_version(&self) -> u64 {
        self.approvals
    }

    fn prune(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.counter.take();
        let then = now.checked_sub(KEPT_APPROVALS).unwrap_or(Timestamp::MIN);
        self.execute(sql::APPROVAL_PRUNE, &[&micros(then)])?;
        let now = micros(now);
        for sql in [sql::COUNTER_PRUNE, sql::SLIDING_PRUNE, sql::SEEN_PRUNE, sql::OWNED_PRUNE] {
            self.execute(sql, &[&now])?;
        }
        self.execute(sql::SPAN_PRUNE, &[]).map(drop)
    }

    fn note(&mut self) -> Result<(), StoreError> {
        self.note_open()
    }
}

impl Usage for SqliteTransaction<'_> {
    fn used(&self, counter: &str, period: Period) -> Result<Amount, Unavailable> {
        Ok(used_of(self.counter(counter).map_err(|_| Unavailable)?, period))
    }
    fn taken(&self, counter: &str, after: Timestamp) -> Result<Vec<Taken>, Unavailable> {
        SqliteUsage(self.connection).taken(counter, after)
    }
    fn in_flight(&self, counter: &str) -> Result<u64, Unavailable> {
        SqliteUsage(self.connection).in_flight(counter)
    }
    fn last_admitted(&self, call: &str) -> Result<Option<Timestamp>, Unavailable> {
        SqliteUsage(self.connection).last_admitted(call)
    }
    fn owns(&self, claim: &Claim<'_>) -> Result<bool, Unavailable> {
        SqliteUsage(self.connection).owns(claim)
    }
}
