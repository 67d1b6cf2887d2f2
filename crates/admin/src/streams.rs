//! Limits on open event streams, per person and in total.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// How many event streams may be open.
const MOST: usize = 64;
/// How many of them one person may have.
const MOST_OF_ONE: usize = 8;

/// Open event streams, by the name of the person.
#[derive(Debug, Default)]
pub(crate) struct Streams(Mutex<HashMap<Arc<str>, usize>>);

/// The slot of one open event stream; dropping it frees the slot.
pub(crate) struct StreamSlot {
    streams: Arc<Streams>,
    person: Arc<str>,
}

/// Why no further event stream may be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TooManyStreams {
    OfAll,
    OfPerson,
}

impl fmt::Display for TooManyStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfAll => write!(f, "there are {MOST} event streams already"),
            Self::OfPerson => write!(f, "you have {MOST_OF_ONE} event streams already; close one"),
        }
    }
}

impl StreamSlot {
    pub(crate) fn take(streams: &Arc<Streams>, person: &Arc<str>) -> Result<Self, TooManyStreams> {
        let mut open = streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.values().sum::<usize>() >= MOST {
            return Err(TooManyStreams::OfAll);
        }
        let own = open.entry(Arc::clone(person)).or_default();
        if *own >= MOST_OF_ONE {
            return Err(TooManyStreams::OfPerson);
        }
        *own += 1;
        Ok(Self { streams: Arc::clone(streams), person: Arc::clone(person) })
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut open = self.streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = open.get_mut(&self.person) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.person);
            }
        }
    }
}
