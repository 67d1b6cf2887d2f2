//! Records which calls of this process are open, and those that exited processes left open.

use jiff::Timestamp;
use rusqlite::params;
use toolgate_audit::CallId;
use toolgate_store::{StoreError, backend::AbandonedCall};

use super::transaction::{ABANDONED, SqliteTransaction};
use crate::{
    error::OrStoreError as _,
    open_calls::{in_rows, spans},
    row::number,
    sql,
    time::micros,
};

impl SqliteTransaction<'_> {
    /// A call begins at this row.
    pub(crate) fn begin(&mut self, seq: u64) -> Result<(), StoreError> {
        let (place, me) = (number(seq), self.owner.id);
        if !self.is_last_owner {
            self.execute(sql::SPAN_ADD, &[&place, &me])?;
            self.is_last_owner = true;
        }
        if self.marks.since.is_none() {
            self.execute(sql::OWNER_PUT, &[&me, &place])?;
            self.marks.since = Some(seq);
        }
        Ok(())
    }

    /// On a tick: calls that were open at the last tick are inserted into `open`.
    pub(crate) fn note_open(&mut self) -> Result<(), StoreError> {
        let Some(before) = self.marks.since else { return Ok(()) };
        let mut since = self.head.saturating_add(1);
        for (_, receipt) in &self.opened {
            since = since.min(receipt.seq);
        }
        let receipts = self.receipts;
        for (call, receipt) in receipts {
            if receipt.noted || self.settled.contains(call) || self.noted.contains(call) {
                continue;
            }
            if receipt.ticks < self.marks.ticks {
                let (seq, me) = (number(receipt.seq), self.owner.id);
                self.execute(sql::OPEN_ADD, &[&call.0, &me, &seq])?;
                self.noted.push(*call);
            } else {
                since = since.min(receipt.seq);
            }
        }
        self.marks.ticks += 1;
        if since != before {
            self.execute(sql::OWNER_PUT, &[&self.owner.id, &number(since)])?;
            self.marks.since = Some(since);
        }
        Ok(())
    }

    /// The call continues as a task, so that it is found by the task's name and stays open if this
    /// process ends first.
    pub(crate) fn note_task(
        &mut self,
        call: CallId,
        task: &str,
        until: Timestamp,
    ) -> Result<(), StoreError> {
        let receipts = self.receipts;
        match receipts.get(&call) {
            _ if self.settled.contains(&call) => return Ok(()),
            Some(receipt) if !receipt.noted && !self.noted.contains(&call) => {
                let (seq, me) = (number(receipt.seq), self.owner.id);
                self.execute(sql::OPEN_ADD, &[&call.0, &me, &seq])?;
                self.noted.push(call);
            }
            _ => {}
        }
        self.execute(sql::TASK_ADD, &[&call.0, &task, &micros(until)]).map(drop)
    }

    /// Calls that dead processes left open as this task.
    pub(crate) fn calls_of_task(&mut self, task: &str) -> Result<Vec<AbandonedCall>, StoreError> {
        let mut statement = self.connection.prepare_cached(sql::TASK_CALLS).or_store_error()?;
        let calls = statement
            .query_map(params![task, ABANDONED], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .or_store_error()?;
        let calls: Vec<([u8; 16], i64, i64)> = calls.collect::<Result<_, _>>().or_store_error()?;
        let dead = calls.into_iter().filter(|(_, _, owner)| self.owner.is_dead(*owner));
        dead.map(|(call, seq, _)| self.with_intent(CallId(call), seq)).collect()
    }

    /// Calls that dead processes left open go to `open`.
    pub(crate) fn insert_abandoned(&mut self) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached(sql::OWNER_OTHERS).or_store_error()?;
        let others = statement
            .query_map([self.owner.id], |row| Ok((row.get(0)?, row.get(1)?)))
            .or_store_error()?;
        let others: Vec<(i64, i64)> = others.collect::<Result<_, _>>().or_store_error()?;
        for (id, since) in others.into_iter().filter(|(id, _)| self.owner.is_dead(*id)) {
            let spans = spans(self.connection)?;
            for (call, seq) in in_rows(self.connection, since)? {
                let after = spans.partition_point(|(first, _)| *first <= seq);
                let span = after.checked_sub(1).and_then(|last| spans.get(last));
                if span.is_some_and(|(_, owner)| *owner == id) {
                    self.execute(sql::OPEN_ADD, &[&call.0, &id, &seq])?;
                }
            }
            self.execute(sql::OWNER_END, &[&id])?;
        }
        Ok(())
    }
}
