//! Takes and refunds counters.

use jiff::Timestamp;
use toolgate_audit::CallId;
use toolgate_policy::{Amount, Period, Take, Window};
use toolgate_store::StoreError;

use super::transaction::SqliteTransaction;
use crate::{sql, time::micros, usage::seconds};

/// What a call took.
pub(crate) struct Receipt {
    /// Sequence number of its intent.
    pub(crate) seq: u64,
    /// The number of ticks when it began.
    pub(crate) ticks: u64,
    /// Whether it is in the table `open`.
    pub(crate) noted: bool,
    pub(crate) at: Timestamp,
    pub(crate) taken: Vec<(String, Take)>,
    /// The previous admission of an identical call, if any.
    pub(crate) seen_before: Option<(String, Timestamp, Window)>,
}

/// A calendar counter as it is stored.
pub(crate) type Stored = Option<(Period, Amount)>;

impl SqliteTransaction<'_> {
    /// A calendar counter as stored; the last one is cached.
    pub(crate) fn counter(&self, key: &str) -> Result<Stored, StoreError> {
        let mut last = self.counter.borrow_mut();
        if let Some((_, stored)) = last.as_ref().filter(|(of, _)| of == key) {
            return Ok(*stored);
        }
        let stored = self.used().counter(key)?;
        *last = Some((key.to_owned(), stored));
        Ok(stored)
    }

    /// Takes one reservation; returns the previous admission of an identical call.
    pub(crate) fn take(
        &mut self,
        call: CallId,
        key: &str,
        take: &Take,
        now: Timestamp,
    ) -> Result<Option<(Timestamp, Window)>, StoreError> {
        match *take {
            Take::Calendar { period, amount, .. } => {
                let stored = self.counter(key)?;
                let stored = stored.filter(|(stored, _)| stored.start >= period.start);
                let (period, used) = stored.unwrap_or((period, Amount::ZERO));
                self.set_counter(key, period, used.plus(amount).unwrap_or(Amount::MAX))?;
            }
            Take::Sliding { window, amount, .. } => {
                self.execute(sql::SLIDING_FORGET, &[&key, &micros(window.before(now))])?;
                let (at, until) = (micros(now), micros(window.after(now)));
                let amount = amount.to_string();
                self.execute(sql::SLIDING_ADD, &[&key, &at, &call.0, &until, &amount])?;
            }
            Take::InFlight { .. } => {
                self.execute(sql::FLIGHT_ADD, &[&key, &call.0])?;
            }
            Take::Seen { within } => {
                let before = self.used().seen(key)?;
                let longest = before.map_or(within, |(_, before)| before.max(within));
                self.execute(sql::SEEN_WRITE, &[&key, &micros(now), &seconds(longest)])?;
                return Ok(before);
            }
        }
        Ok(None)
    }

    pub(crate) fn give_back(&mut self, call: CallId, receipt: &Receipt) -> Result<(), StoreError> {
        for (key, take) in &receipt.taken {
            match *take {
                Take::Calendar { period, amount, .. } => {
                    if let Some((stored, used)) = self.counter(key)?
                        && stored.start == period.start
                    {
                        self.set_counter(key, stored, used.minus(amount))?;
                    }
                }
                Take::Sliding { .. } => {
                    let at = micros(receipt.at);
                    self.execute(sql::SLIDING_BACK, &[key, &at, &call.0])?;
                }
                Take::InFlight { .. } => {}
                Take::Seen { .. } => {
                    self.execute(sql::SEEN_BACK, &[key])?;
                }
            }
        }
        if let Some((key, at, within)) = &receipt.seen_before {
            self.execute(sql::SEEN_WRITE, &[key, &micros(*at), &seconds(*within)])?;
        }
        Ok(())
    }

    fn set_counter(&mut self, key: &str, period: Period, used: Amount) -> Result<(), StoreError> {
        self.counter.take();
        let (start, until, used) = (micros(period.start), micros(period.end), used.to_string());
        self.execute(sql::COUNTER_WRITE, &[&key, &start, &until, &used]).map(drop)
    }
}
