//! How many streams of events are open, and who holds them.

use std::collections::HashMap;
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

impl Place {
    pub(crate) fn take(streams: &Arc<Streams>, person: &Arc<str>) -> Result<Self, String> {
        let mut open = streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.values().sum::<usize>() >= MOST {
            return Err(format!("there are {MOST} streams of events already"));
        }
        let own = open.entry(Arc::clone(person)).or_default();
        if *own >= MOST_OF_ONE {
            return Err(format!("you have {MOST_OF_ONE} streams of events already; close one"));
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
