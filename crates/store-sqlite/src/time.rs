//! Times as the database keeps them: whole microseconds since 1970.

use jiff::Timestamp;

pub(crate) fn micros(time: Timestamp) -> i64 {
    time.as_microsecond()
}

/// `None` for what is no time.
pub(crate) fn timestamp(micros: i64) -> Option<Timestamp> {
    Timestamp::from_microsecond(micros).ok()
}

/// The mark of a store that never counted is the beginning of time.
pub(crate) fn mark(micros: i64) -> Timestamp {
    timestamp(micros).unwrap_or(if micros < 0 { Timestamp::MIN } else { Timestamp::MAX })
}
