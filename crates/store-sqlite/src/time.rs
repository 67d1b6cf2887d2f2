//! Times as stored: whole microseconds since 1970.

use jiff::Timestamp;

pub(crate) fn micros(time: Timestamp) -> i64 {
    time.as_microsecond()
}

/// `None` if the value is out of range.
pub(crate) fn timestamp(micros: i64) -> Option<Timestamp> {
    Timestamp::from_microsecond(micros).ok()
}

/// The high-water mark of a new store is the minimum time.
pub(crate) fn mark(micros: i64) -> Timestamp {
    timestamp(micros).unwrap_or(if micros < 0 { Timestamp::MIN } else { Timestamp::MAX })
}
