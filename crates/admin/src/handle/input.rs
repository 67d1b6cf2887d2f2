//! What several handlers ask of what they are given.

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use serde::{Deserialize, Deserializer};

use crate::fault::Fault;

/// A label of a grant or a name of a person: short, printable, and not toolgate's own.
pub(crate) fn check_name(what: &str, name: &str, taken: &str) -> Result<(), Fault> {
    if name == taken {
        return Err(Fault::conflict(format!("`{name}` is taken by toolgate itself")));
    }
    let good = !name.is_empty()
        && name.chars().count() <= 64
        && !name.contains(char::is_control)
        && name.trim() == name;
    if good {
        return Ok(());
    }
    let why = "must have 1 to 64 characters, no control characters, no space around it";
    Err(Fault::bad_request(format!("`{what}` {why}")))
}

/// A day (00:00 UTC of it) or a time, in the future.
pub(crate) fn expires(text: &str, now: Timestamp) -> Result<Timestamp, Fault> {
    let day = text.parse::<Date>().ok().filter(|_| !text.contains(['T', ' ']));
    let end = match day {
        Some(day) => {
            let midnight = day.to_datetime(Time::midnight()).to_zoned(TimeZone::UTC);
            midnight.ok().map(|midnight| midnight.timestamp())
        }
        None => text.parse::<Timestamp>().ok(),
    };
    let wrong = "`expires` must be a day (2027-01-01) or a time (2027-01-01T12:00:00Z)";
    let end = end.ok_or_else(|| Fault::bad_request(wrong))?;
    if end <= now {
        return Err(Fault::bad_request("`expires` is over already"));
    }
    Ok(end)
}

/// A time as it is answered: RFC 3339, UTC.
pub(crate) fn shown(time: Timestamp) -> String {
    time.to_string()
}

/// Tells an absent key from one that is null.
#[expect(clippy::option_option, reason = "absent, and to be removed, are two things")]
pub(crate) fn given<'de, D, T>(from: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(from).map(Some)
}
