//! Checks of input that several handlers share.

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use serde::{Deserialize, Deserializer};

use crate::fault::Fault;

/// A label of a grant or a name of a person: short, printable, and not reserved.
pub(crate) fn check_name(what: &str, name: &str, taken: &[&str]) -> Result<(), Fault> {
    if taken.contains(&name) {
        return Err(Fault::conflict(format!("`{name}` is reserved")));
    }
    let good = !name.is_empty()
        && name.chars().count() <= 64
        && !name.contains(char::is_control)
        && name.trim() == name;
    if good {
        return Ok(());
    }
    let why = "must have 1 to 64 characters, no control characters, no leading or trailing space";
    Err(Fault::bad_request(format!("`{what}` {why}")))
}

/// A date (00:00 UTC) or a time, in the future.
pub(crate) fn expires(text: &str, now: Timestamp) -> Result<Timestamp, Fault> {
    let day = text.parse::<Date>().ok().filter(|_| !text.contains(['T', ' ']));
    let end = match day {
        Some(day) => {
            let midnight = day.to_datetime(Time::midnight()).to_zoned(TimeZone::UTC);
            midnight.ok().map(|midnight| midnight.timestamp())
        }
        None => text.parse::<Timestamp>().ok(),
    };
    let wrong = "`expires` must be a date (2027-01-01) or a time (2027-01-01T12:00:00Z)";
    let end = end.ok_or_else(|| Fault::bad_request(wrong))?;
    if end <= now {
        return Err(Fault::bad_request("`expires` is in the past"));
    }
    Ok(end)
}

/// A time in responses: RFC 3339, UTC.
pub(crate) fn shown(time: Timestamp) -> String {
    time.to_string()
}

/// Distinguishes an absent key from null.
#[expect(clippy::option_option, reason = "absent and null are different")]
pub(crate) fn given<'de, D, T>(from: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(from).map(Some)
}
