//! Limits the memory of unfinished frames of all sockets together.
//!
//! A frame is read completely before it is parsed, and it may be large. One socket is bounded by
//! the frame limit; this bounds all of them. Over the limit, the socket with the oldest unfinished
//! frame is closed: a working program finishes its frames much sooner.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Less than this is not counted.
const SMALL: usize = 64 * 1024;

/// The limit for all sockets.
#[derive(Debug)]
pub(super) struct Intake {
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    total: usize,
    next: u64,
    /// Sockets that hold much, the oldest frame first.
    held: BTreeMap<u64, Held>,
}

#[derive(Debug)]
struct Held {
    bytes: usize,
    gives_way: Arc<Notify>,
}

/// The share of one socket.
#[derive(Debug)]
pub(super) struct IntakeShare {
    intake: Arc<Intake>,
    place: Option<u64>,
    gives_way: Arc<Notify>,
}

impl Intake {
    /// A limit of `most` bytes in total.
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, state: Mutex::default() })
    }

    /// A share for a socket, and the signal that the socket must close.
    pub(super) fn share(self: &Arc<Self>) -> (IntakeShare, Arc<Notify>) {
        let gives_way = Arc::new(Notify::new());
        let share =
            IntakeShare { intake: Arc::clone(self), place: None, gives_way: gives_way.clone() };
        (share, gives_way)
    }
}

impl IntakeShare {
    /// The socket holds this many bytes now.
    pub(super) fn holds(&mut self, bytes: usize) {
        if bytes < SMALL {
            return self.give_back();
        }
        let mut state = self.intake.state.lock();
        let State { total, next, held } = &mut *state;
        let place = *self.place.get_or_insert_with(|| {
            *next += 1;
            held.insert(*next, Held { bytes: 0, gives_way: Arc::clone(&self.gives_way) });
            *next
        });
        // A socket that must close is no longer counted.
        let Some(own) = held.get_mut(&place) else { return };
        *total += bytes;
        *total -= std::mem::replace(&mut own.bytes, bytes);
        while *total > self.intake.most
            && let Some((_, oldest)) = held.pop_first()
        {
            *total -= oldest.bytes;
            oldest.gives_way.notify_one();
        }
    }

    fn give_back(&mut self) {
        let Some(place) = self.place.take() else { return };
        let mut state = self.intake.state.lock();
        if let Some(own) = state.held.remove(&place) {
            state.total -= own.bytes;
        }
    }
}

impl Drop for IntakeShare {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn has_to_go(told: &Notify) -> bool {
        told.notified().now_or_never().is_some()
    }

    #[test]
    fn the_oldest_frame_is_evicted_and_finished_ones_are_not_counted() {
        let intake = Intake::new(10 * SMALL);
        let (mut first, first_told) = intake.share();
        let (mut second, second_told) = intake.share();
        let (mut third, third_told) = intake.share();
        first.holds(4 * SMALL);
        second.holds(5 * SMALL);
        first.holds(SMALL - 1);
        third.holds(5 * SMALL);
        first.holds(SMALL - 1);
        assert!(![&first_told, &second_told, &third_told].into_iter().any(|told| has_to_go(told)));
        third.holds(6 * SMALL);
        assert!(has_to_go(&second_told) && !has_to_go(&third_told));
        // What it sends while it closes is not counted twice.
        second.holds(9 * SMALL);
        first.holds(4 * SMALL);
        assert!(!has_to_go(&first_told) && !has_to_go(&third_told));
        drop((first, second, third));
        assert_eq!(intake.state.lock().total, 0);
        assert!(intake.state.lock().held.is_empty());
    }
}
