//! Room for bodies: how much memory the requests of one grant, and of all grants, may hold at once.
//!
//! Invariant: the bytes that are counted here never exceed the bounds. A body that finds no room is
//! rejected; a body of up to [`SMALL`] bytes always finds room, because connections are bounded.
//! Invariant: what a share took is free again when the share is dropped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bodies up to this size are not counted.
const SMALL: usize = 16 * 1024;
/// How many bodies of the largest size one grant may have in memory.
const OF_ONE: usize = 16;
/// How many bodies of the largest size all grants together may have in memory.
const OF_ALL: usize = 64;

/// The bytes that are taken.
#[derive(Debug, Default)]
pub(crate) struct Room(Mutex<Taken>);

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_grant: HashMap<Arc<str>, usize>,
}

/// What one body has taken.
#[derive(Debug)]
pub(crate) struct Share<'r> {
    room: &'r Room,
    grant: Arc<str>,
    /// The largest body.
    body: usize,
    taken: usize,
}

impl Room {
    /// A share for one body of a grant; `body` is the size of the largest body.
    pub(crate) fn share(&self, grant: &Arc<str>, body: usize) -> Share<'_> {
        Share { room: self, grant: Arc::clone(grant), body, taken: 0 }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share<'_> {
    /// Makes room for a body that has `size` bytes by now; false if there is none.
    pub(crate) fn grow(&mut self, size: usize) -> bool {
        let more = size.saturating_sub(self.taken);
        if size <= SMALL || more == 0 {
            return true;
        }
        let mut taken = self.room.taken();
        let all = taken.all.saturating_add(more);
        let own = taken.by_grant.get(&self.grant).copied().unwrap_or(0).saturating_add(more);
        if all > self.body.saturating_mul(OF_ALL) || own > self.body.saturating_mul(OF_ONE) {
            return false;
        }
        taken.all = all;
        taken.by_grant.insert(Arc::clone(&self.grant), own);
        self.taken = size;
        true
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        if self.taken == 0 {
            return;
        }
        let mut taken = self.room.taken();
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
        let room = Room::default();
        let grants: Vec<Arc<str>> = (0..5).map(|n| n.to_string().into()).collect();
        let mut held = Vec::new();
        for grant in &grants {
            for n in 0..=OF_ONE {
                let mut share = room.share(grant, BODY);
                let fits = n < OF_ONE && held.len() < OF_ALL;
                assert!(share.grow(SMALL), "small ones fit always");
                assert_eq!(share.grow(BODY), fits, "{grant} {n}");
                held.extend(fits.then_some(share));
            }
        }
        assert_eq!(held.len(), OF_ALL);
        drop(held);
        let taken = room.taken();
        assert_eq!((taken.all, taken.by_grant.len()), (0, 0));
    }
}
