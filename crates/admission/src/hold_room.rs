//! Room for the calls of one grant that wait for people.
//!
//! A waiting call keeps its arguments in memory. A call for which there is no room does not wait: it is
//! answered at once, its approval stays pending, and a repeat finds it.
//!
//! Invariant: the waiting calls of one grant are at most [`CALLS`], with [`BYTES`] of arguments; one
//! call always has room.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// How many calls of one grant may wait.
const CALLS: usize = 10_000;
/// How many bytes of arguments the waiting calls of one grant may have.
const BYTES: usize = 64 * 1024 * 1024;

/// What the waiting calls take, by grant.
#[derive(Debug, Default)]
pub(crate) struct HoldRoom(Mutex<HashMap<Arc<str>, Taken>>);

#[derive(Debug, Default, Clone, Copy)]
struct Taken {
    calls: usize,
    bytes: usize,
}

/// The place of one waiting call.
#[derive(Debug)]
pub(crate) struct Place<'r> {
    room: &'r HoldRoom,
    grant: Arc<str>,
    bytes: usize,
}

impl HoldRoom {
    /// Reserves a place for a call of this grant with `bytes` of arguments; `None` if a limit is reached.
    pub(crate) fn take(&self, grant: &Arc<str>, bytes: usize) -> Option<Place<'_>> {
        let mut all = self.0.lock();
        let taken = all.get(grant).copied().unwrap_or_default();
        let sum = taken.bytes.saturating_add(bytes);
        if taken.calls > 0 && (taken.calls >= CALLS || sum > BYTES) {
            return None;
        }
        all.insert(Arc::clone(grant), Taken { calls: taken.calls + 1, bytes: sum });
        Some(Place { room: self, grant: Arc::clone(grant), bytes })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut all = self.room.0.lock();
        let Some(taken) = all.get_mut(&self.grant) else { return };
        (taken.calls, taken.bytes) = (taken.calls - 1, taken.bytes - self.bytes);
        if taken.calls == 0 {
            all.remove(&self.grant);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_of_one_grant_are_bounded() {
        let room = HoldRoom::default();
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let large = room.take(&a, BYTES + 1).unwrap();
        assert!(room.take(&a, 0).is_none(), "too many bytes");
        let other = room.take(&b, BYTES).unwrap();
        assert!(room.take(&b, 1).is_none());
        drop((large, other));
        let all: Vec<_> = (0..CALLS).map(|_| room.take(&a, 1).unwrap()).collect();
        assert!(room.take(&a, 0).is_none(), "too many calls");
        assert!(room.take(&b, 0).is_some(), "another grant has its own room");
        drop(all);
        assert!(room.take(&a, 0).is_some());
        assert!(room.0.lock().is_empty());
    }
}
