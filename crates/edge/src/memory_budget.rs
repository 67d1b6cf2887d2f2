//! Memory budget for request bodies and for answers that agents have not read yet, per grant and in
//! total.
//!
//! Invariant: the counted bytes never exceed the limits. A body that does not fit is rejected; a
//! body of up to [`SMALL`] bytes always fits, because connections are bounded.
//! Invariant: a reservation is released when it is dropped. The reservation of an answer is dropped
//! with the last of its bytes, wherever they wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// Bodies and answers up to this size are not counted.
pub(crate) const SMALL: usize = 16 * 1024;
/// How many bodies of the largest size one grant may have in memory.
const OF_ONE: usize = 16;
/// How many bodies of the largest size all grants together may have in memory.
const OF_ALL: usize = 64;
/// How many answers of the largest size one grant may leave unread.
const UNREAD_OF_ONE: usize = 8;
/// The same for all grants together.
const UNREAD_OF_ALL: usize = 16;

/// The reserved bytes.
#[derive(Debug, Default)]
pub(crate) struct MemoryBudget(Mutex<Taken>);

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_grant: HashMap<Arc<str>, usize>,
}

/// The reservation of one body.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<MemoryBudget>,
    grant: Arc<str>,
    /// The limit of its grant, in bytes.
    of_one: usize,
    /// The limit of all grants together, in bytes.
    of_all: usize,
    taken: usize,
}

/// Bytes of an answer, with their reservation.
struct Accounted(Bytes, #[expect(dead_code, reason = "it is held, not read")] Arc<Reservation>);

impl MemoryBudget {
    /// A reservation for one body of a grant; `body` is the size of the largest body.
    pub(crate) fn reserve_body(self: &Arc<Self>, grant: &Arc<str>, body: usize) -> Reservation {
        let (of_one, of_all) = (body.saturating_mul(OF_ONE), body.saturating_mul(OF_ALL));
        Reservation { budget: Arc::clone(self), grant: Arc::clone(grant), of_one, of_all, taken: 0 }
    }

    /// Reserves memory for an answer until its bytes are sent or dropped; `None` if it does not
    /// fit. `largest` is the size of the largest answer.
    pub(crate) fn reserve_answer(
        self: &Arc<Self>,
        grant: &Arc<str>,
        largest: usize,
        answer: impl IntoIterator<Item = Bytes, IntoIter: Clone>,
    ) -> Option<Vec<Bytes>> {
        let (budget, grant) = (Arc::clone(self), Arc::clone(grant));
        let of_one = largest.saturating_mul(UNREAD_OF_ONE);
        let of_all = largest.saturating_mul(UNREAD_OF_ALL);
        let mut reservation = Reservation { budget, grant, of_one, of_all, taken: 0 };
        let pieces = answer.into_iter();
        if !reservation.grow(pieces.clone().map(|piece| piece.len()).sum()) {
            return None;
        }
        if reservation.taken == 0 {
            return Some(pieces.collect());
        }
        let reservation = Arc::new(reservation);
        Some(
            pieces
                .map(|piece| Bytes::from_owner(Accounted(piece, Arc::clone(&reservation))))
                .collect(),
        )
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsRef<[u8]> for Accounted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Reservation {
    /// Extends the reservation to `size` bytes; false if they do not fit.
    pub(crate) fn grow(&mut self, size: usize) -> bool {
        let more = size.saturating_sub(self.taken);
        if size <= SMALL || more == 0 {
            return true;
        }
        let mut taken = self.budget.taken();
        let all = taken.all.saturating_add(more);
        let before = taken.by_grant.get(&self.grant).copied().unwrap_or(0);
        let own = before.saturating_add(more);
        if all > self.of_all || (own > self.of_one && before > 0) {
            return false;
        }
        taken.all = all;
        taken.by_grant.insert(Arc::clone(&self.grant), own);
        self.taken = size;
        true
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.taken == 0 {
            return;
        }
        let mut taken = self.budget.taken();
        taken.all = taken.all.saturating_sub(self.taken);
        let left = taken.by_grant.get(&self.grant).map_or(0, |own| own.saturating_sub(self.taken));
        if left == 0 {
            taken.by_grant.remove(&self.grant);
        } else {
            taken.by_grant.insert(Arc::clone(&self.grant), left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_grant_leaves_room_for_others() {
        const BODY: usize = 1024 * 1024;
        let budget = Arc::new(MemoryBudget::default());
        let grants: Vec<Arc<str>> = (0..5).map(|n| n.to_string().into()).collect();
        let mut held = Vec::new();
        for grant in &grants {
            for n in 0..=OF_ONE {
                let mut reservation = budget.reserve_body(grant, BODY);
                let fits = n < OF_ONE && held.len() < OF_ALL;
                assert!(reservation.grow(SMALL), "small ones fit always");
                assert_eq!(reservation.grow(BODY), fits, "{grant} {n}");
                held.extend(fits.then_some(reservation));
            }
        }
        assert_eq!(held.len(), OF_ALL);
        drop(held);
        let taken = budget.taken();
        assert_eq!((taken.all, taken.by_grant.len()), (0, 0));
    }

    #[test]
    fn unread_answers_of_one_grant_are_bounded() {
        let budget = Arc::new(MemoryBudget::default());
        let (greedy, other): (Arc<str>, Arc<str>) = ("greedy".into(), "other".into());
        let largest = 1024 * 1024;
        let unread =
            |grant: &Arc<str>, answer: Bytes| budget.reserve_answer(grant, largest, [answer]);
        let large = Bytes::from(vec![0; largest * UNREAD_OF_ONE / 2]);
        let first = unread(&greedy, large.clone()).unwrap();
        let second = unread(&greedy, large.clone()).unwrap();
        assert!(unread(&greedy, large.clone()).is_none(), "no budget");
        assert!(unread(&greedy, Bytes::from_static(b"small")).is_some());
        assert!(unread(&other, large.clone()).is_some(), "others have budget");
        // A part of an answer that still waits keeps the reservation.
        let rest = first.first().unwrap().slice(1..2);
        drop(first);
        assert!(unread(&greedy, large.clone()).is_none(), "no budget yet");
        drop(rest);
        assert!(unread(&greedy, large).is_some(), "budget again");
        drop(second);
        assert_eq!(budget.taken().all, 0);
    }
}
