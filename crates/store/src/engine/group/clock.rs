//! Time of a group: the effective time, and what is due when it has passed.

use jiff::{SignedDuration, Timestamp};
use toolgate_audit::{Coalescer, Draft, Effect, Outcome};

use super::{Group, JobResult};
use crate::{Completion, StoreError, backend::AbandonedCall};

/// How long a call waits for its next round.
const ROUND_TIMEOUT: SignedDuration = SignedDuration::from_mins(10);
/// How often expired counters are pruned and exited processes are searched for.
const SWEEP: SignedDuration = SignedDuration::from_secs(60);

impl Group<'_> {
    pub(super) fn tick(&mut self, now: Timestamp) -> Result<JobResult, StoreError> {
        let now = self.time(now);
        self.end_minute(now);
        self.write_touched()?;
        self.transaction.note()?;
        let then = now.checked_sub(ROUND_TIMEOUT).unwrap_or(Timestamp::MIN);
        self.expire_due(now)?;
        for call in self.transaction.waiting_since(then)? {
            self.give_up(&call, Outcome::Cancelled, "the call was not continued in time")?;
        }
        if now.duration_since(self.memory.swept) >= SWEEP {
            self.memory.swept = now;
            self.transaction.prune(now)?;
            self.recover()?;
        }
        Ok(JobResult::Nothing)
    }

    /// Ends calls whose process has ended; answers how many there were.
    pub(in crate::engine) fn recover(&mut self) -> Result<usize, StoreError> {
        let abandoned = self.transaction.abandoned(self.memory.now)?;
        for call in &abandoned {
            self.give_up(call, Outcome::Unknown, "toolgate exited before the call ended")?;
        }
        Ok(abandoned.len())
    }

    fn give_up(
        &mut self,
        call: &AbandonedCall,
        outcome: Outcome,
        why: &str,
    ) -> Result<(), StoreError> {
        let mut completion = Completion::new(outcome, Effect::Unknown, self.memory.now);
        completion.message = Some(why.into());
        let intent = Draft { call_id: Some(call.call_id), ..call.intent.clone() };
        self.settle(&intent, completion).map(drop)
    }

    /// If the commit fails, the time of last use is at most one second too old.
    pub(super) fn write_touched(&mut self) -> Result<(), StoreError> {
        for (grant, now) in std::mem::take(&mut self.memory.touched) {
            self.transaction.touch(&grant, now)?;
        }
        Ok(())
    }

    pub(super) fn end_minute(&mut self, now: Timestamp) {
        let due = self.memory.coalescer.due(now);
        self.memory.owed.extend(due);
    }

    /// Sets the effective time, even to an earlier one.
    pub(super) fn accept_clock(&mut self, now: Timestamp) -> Timestamp {
        let rest = self.memory.coalescer.flush(now);
        self.memory.owed.extend(rest);
        self.memory.coalescer = Coalescer::default();
        (self.memory.now, self.memory.swept, self.state.mark) = (now, now, now);
        self.time(now)
    }

    /// The effective time: never earlier than any before.
    pub(super) fn time(&mut self, given: Timestamp) -> Timestamp {
        let given = Timestamp::from_microsecond(given.as_microsecond()).unwrap_or(given);
        self.memory.now = self.memory.now.max(given);
        self.memory.now
    }
}
