//! How many streams of events are open, and who holds them.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// How many streams there may be.
const MOST: usize = 64;
/// How many of them one person may hold.
const MOST_OF_ONE: usize = 8;

/// The streams that are open, by the name of the person.
#[derive(Debug, Default)]
pub(crate) struct Streams(Mutex<HashMap<Arc<str>, usize>>);

/// One of the streams there may be.
pub(crate) struct Place {
    streams: Arc<Streams>,
    person: Arc<str>,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TooMany {
    InAll,
    OfOne,
}

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InAll => write!(f, "there are {MOST} streams of events already"),
            Self::OfOne => write!(f, "you have {MOST_OF_ONE} streams of events already; close one"),
        }
    }
}

impl Place {
    pub(crate) fn take(streams: &Arc<Streams>, person: &Arc<str>) -> Result<Self, TooMany> {
        let mut open = streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.values().sum::<usize>() >= MOST {
            return Err(TooMany::InAll);
        }
        let own = open.entry(Arc::clone(person)).or_default();
        if *own >= MOST_OF_ONE {
            return Err(TooMany::OfOne);
        }
        *own += 1;
        Ok(Self { streams: Arc::clone(streams), person: Arc::clone(person) })
    }
}

impl Drop for Place {
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
