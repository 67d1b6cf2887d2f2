//! Counters in memory: [`Usage`] as plain data, with admission and refunds.
//!
//! Used for `tests:` of a document and as the model that stores are compared with. It has no lock and
//! no clock: no other call may be admitted between deciding and admitting a call.
//!
//! Invariant: a call's counters are taken all or none, and returned to the window they came from.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use jiff::Timestamp;

use crate::{
    Amount, Claim, Exception, Period, Reservation, Take, Taken, Unavailable, Usage, Window, Yielded,
};

/// The counters.
#[derive(Debug, Default)]
pub struct Ledger {
    counters: HashMap<String, (Period, Amount)>,
    logs: HashMap<String, (Window, Vec<Taken>)>,
    running: HashMap<String, u64>,
    seen: HashMap<String, (Timestamp, Window)>,
    owned: HashMap<(String, String, String), Owned>,
    exceptions: Vec<Arc<Exception>>,
}

/// The owners of a value, and until when.
#[derive(Debug)]
struct Owned {
    grants: HashSet<String>,
    identity: Option<String>,
    until: Timestamp,
}

/// A reservation that no longer fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoRoom {
    /// The rule whose counter is full.
    pub rule: Arc<str>,
}

/// What one admission took, to be returned or settled.
#[derive(Debug, Default)]
#[must_use = "calls in flight end only when their receipt is settled"]
pub struct Receipt {
    taken: Vec<(String, Take)>,
    /// The previous admission of the same call, if any.
    seen_before: Option<(String, (Timestamp, Window))>,
    at: Timestamp,
}

/// The result of yielding a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// The grant owns it now.
    Recorded,
    /// Another grant does; nothing was recorded.
    Conflict,
}

impl Ledger {
    /// Takes everything or nothing.
    pub fn admit(
        &mut self,
        reservations: &[Reservation],
        now: Timestamp,
    ) -> Result<Receipt, NoRoom> {
        let mut receipt = Receipt { at: now, ..Receipt::default() };
        for reservation in reservations {
            if self.fits(reservation, now) {
                receipt.taken.push((reservation.key.clone(), reservation.take.clone()));
            } else if reservation.enforced {
                return Err(NoRoom { rule: Arc::clone(&reservation.rule) });
            }
        }
        for (key, take) in &receipt.taken {
            if let (Take::Seen { .. }, None) = (take, &receipt.seen_before) {
                receipt.seen_before = self.seen.get(key).map(|seen| (key.clone(), *seen));
            }
            self.take(key, take, now);
        }
        Ok(receipt)
    }

    fn fits(&self, reservation: &Reservation, now: Timestamp) -> bool {
        let key = &reservation.key;
        match reservation.take {
            Take::Calendar { period, amount, max } => {
                self.used(key, period).is_ok_and(|used| used.plus(amount).is_some_and(|s| s <= max))
            }
            Take::Sliding { window, amount, max } => {
                let log = self.taken(key, window.before(now)).unwrap_or_default();
                log.iter()
                    .try_fold(amount, |sum, taken| sum.plus(taken.amount))
                    .is_some_and(|sum| sum <= max)
            }
            Take::InFlight { max } => self.running.get(key).copied().unwrap_or_default() < max,
            Take::Seen { .. } => true,
        }
    }

    fn take(&mut self, key: &str, take: &Take, now: Timestamp) {
        match *take {
            Take::Calendar { period, amount, .. } => {
                let slot = self.counters.entry(key.to_owned()).or_insert((period, Amount::ZERO));
                if slot.0.start < period.start {
                    *slot = (period, Amount::ZERO);
                }
                slot.1 = slot.1.plus(amount).unwrap_or(Amount::MAX);
            }
            Take::Sliding { window, amount, .. } => {
                let (kept, log) =
                    self.logs.entry(key.to_owned()).or_insert_with(|| (window, Vec::new()));
                *kept = window;
                log.retain(|taken| window.after(taken.at) > now);
                log.push(Taken { at: now, amount });
            }
            Take::InFlight { .. } => *self.running.entry(key.to_owned()).or_default() += 1,
            Take::Seen { within } => {
                let slot = self.seen.entry(key.to_owned()).or_insert((now, within));
                *slot = (now, slot.1.max(within));
            }
        }
    }

    /// The call has ended: it is no longer in flight.
    pub fn settle(&mut self, receipt: Receipt) {
        for (key, take) in receipt.taken {
            if matches!(take, Take::InFlight { .. }) {
                self.land(&key);
            }
        }
    }

    /// The call was never sent: returns everything to the window it was taken from.
    pub fn give_back(&mut self, receipt: Receipt) {
        let at = receipt.at;
        for (key, take) in receipt.taken {
            match take {
                Take::Calendar { period, amount, .. } => {
                    if let Some((stored, used)) = self.counters.get_mut(&key)
                        && stored.start == period.start
                    {
                        *used = used.minus(amount);
                    }
                }
                Take::Sliding { amount, .. } => {
                    if let Some((_, log)) = self.logs.get_mut(&key)
                        && let Some(place) =
                            log.iter().position(|t| t.at == at && t.amount == amount)
                    {
                        log.remove(place);
                    }
                }
                Take::InFlight { .. } => self.land(&key),
                Take::Seen { .. } => {
                    self.seen.remove(&key);
                }
            }
        }
        self.seen.extend(receipt.seen_before);
    }

    fn land(&mut self, key: &str) {
        if let Some(running) = self.running.get_mut(key) {
            *running = running.saturating_sub(1);
            if *running == 0 {
                self.running.remove(key);
            }
        }
    }

    /// Removes what is no longer relevant.
    pub fn prune(&mut self, now: Timestamp) {
        self.counters.retain(|_, (period, _)| period.end > now);
        self.logs.retain(|_, (window, log)| {
            log.retain(|taken| window.after(taken.at) > now);
            !log.is_empty()
        });
        self.seen.retain(|_, (at, within)| within.after(*at) > now);
        self.owned.retain(|_, owned| owned.until > now);
        self.exceptions.retain(|exception| exception.expires > now);
    }

    /// An operator accepted another clock: moves everything from `from` to `to` and keeps the counts.
    /// Calendar windows end where the next one begins after `to`.
    pub fn rebase(&mut self, from: Timestamp, to: Timestamp) {
        let by = to.duration_since(from);
        let moved = |at: Timestamp| at.checked_add(by).unwrap_or(to);
        self.counters.retain(|_, (period, _)| period.end > from);
        for (period, _) in self.counters.values_mut() {
            *period = Period { start: to, end: moved(period.end) };
        }
        for taken in self.logs.values_mut().flat_map(|(_, log)| log) {
            taken.at = moved(taken.at);
        }
        self.seen.values_mut().for_each(|(at, _)| *at = moved(*at));
        self.owned.values_mut().for_each(|owned| owned.until = moved(owned.until));
    }

    /// Records that a grant received a value.
    pub fn own(
        &mut self,
        yielded: &Yielded,
        grant: &str,
        identity: Option<&str>,
        now: Timestamp,
    ) -> Ownership {
        let key = (yielded.server.clone(), yielded.kind.clone(), yielded.value.clone());
        let until = yielded.keep.after(now);
        let by_identity = identity.filter(|_| yielded.by_identity).map(str::to_owned);
        let fresh = || Owned {
            grants: HashSet::from([grant.to_owned()]),
            identity: by_identity.clone(),
            until,
        };
        let owned = self.owned.entry(key).or_insert_with(fresh);
        if owned.until <= now {
            *owned = fresh();
        }
        let mine = owned.grants.contains(grant)
            || (by_identity.is_some() && owned.identity == by_identity);
        if !mine && !yielded.shared {
            return Ownership::Conflict;
        }
        owned.grants.insert(grant.to_owned());
        owned.until = owned.until.max(until);
        Ownership::Recorded
    }

    /// Removes a value that was ended.
    pub fn end(&mut self, server: &str, kind: &str, value: &str) {
        self.owned.remove(&(server.to_owned(), kind.to_owned(), value.to_owned()));
    }

    /// Adds a standing exception.
    pub fn except(&mut self, exception: Exception) {
        self.exceptions.push(Arc::new(exception));
    }
}

impl Usage for Ledger {
    fn used(&self, counter: &str, period: Period) -> Result<Amount, Unavailable> {
        Ok(match self.counters.get(counter) {
            Some((stored, used)) if stored.start >= period.start => *used,
            _ => Amount::ZERO,
        })
    }

    fn taken(&self, counter: &str, after: Timestamp) -> Result<Vec<Taken>, Unavailable> {
        let log = self.logs.get(counter).map(|(_, log)| log.as_slice()).unwrap_or_default();
        Ok(log.iter().copied().filter(|taken| taken.at > after).collect())
    }

    fn in_flight(&self, counter: &str) -> Result<u64, Unavailable> {
        Ok(self.running.get(counter).copied().unwrap_or_default())
    }

    fn last_admitted(&self, call: &str) -> Result<Option<Timestamp>, Unavailable> {
        Ok(self.seen.get(call).map(|(at, _)| *at))
    }

    fn owns(&self, claim: &Claim<'_>) -> Result<bool, Unavailable> {
        let key = (claim.server.to_owned(), claim.kind.to_owned(), claim.value.to_owned());
        Ok(self.owned.get(&key).is_some_and(|owned| {
            let same_identity =
                owned.identity.is_some() && owned.identity.as_deref() == claim.identity;
            owned.until > claim.now && (owned.grants.contains(claim.grant) || same_identity)
        }))
    }

    fn exceptions(&self) -> &[Arc<Exception>] {
        &self.exceptions
    }
}

#[cfg(test)]
mod tests;
