//! Windows of time: calendar windows and durations, with time zones.
//!
//! Below a day a calendar window is aligned to the Unix epoch; days begin at local midnight, be it
//! 23, 24 or 25 hours to the next one.
//!
//! Invariant: windows of one length and zone do not overlap and leave no gap.

use std::fmt;

use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};

/// The length of a window, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window(u32);

const DAY: u32 = 86_400;

impl Window {
    /// The longest window, in seconds: ten years.
    pub const MAX: u32 = 3653 * DAY;
    /// One minute.
    pub const MINUTE: Window = Window(60);
    /// One hour.
    pub const HOUR: Window = Window(3600);
    /// One day.
    pub const DAY: Window = Window(DAY);

    /// From seconds; `None` for zero and for more than [`Window::MAX`].
    pub fn seconds(seconds: u64) -> Option<Self> {
        u32::try_from(seconds).ok().filter(|s| (1..=Self::MAX).contains(s)).map(Self)
    }

    /// `minute`, `hour`, `day`, or a number and a unit: `90s`, `15m`, `2h`, `7d`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "minute" => Some(Self::MINUTE),
            "hour" => Some(Self::HOUR),
            "day" => Some(Self::DAY),
            _ => {
                let (count, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
                let unit = match unit {
                    "s" => 1,
                    "m" => 60,
                    "h" => 3600,
                    "d" => u64::from(DAY),
                    _ => return None,
                };
                if count.is_empty() || !count.bytes().all(|b| b.is_ascii_digit()) {
                    return None;
                }
                Self::seconds(count.parse::<u64>().ok()?.checked_mul(unit)?)
            }
        }
    }

    /// The shortest way to write it in a policy: `minute`, `15m`, `7d`.
    pub fn spelling(self) -> String {
        match self.0 {
            60 => "minute".to_owned(),
            3600 => "hour".to_owned(),
            DAY => "day".to_owned(),
            s if s.is_multiple_of(DAY) => format!("{}d", s / DAY),
            s if s.is_multiple_of(3600) => format!("{}h", s / 3600),
            s if s.is_multiple_of(60) => format!("{}m", s / 60),
            s => format!("{s}s"),
        }
    }

    /// Its length in seconds.
    pub fn as_seconds(self) -> u32 {
        self.0
    }

    /// Its length.
    pub fn length(self) -> SignedDuration {
        SignedDuration::from_secs(i64::from(self.0))
    }

    /// One window later; the last timestamp if there is no such instant.
    pub fn after(self, at: Timestamp) -> Timestamp {
        at.checked_add(self.length()).unwrap_or(Timestamp::MAX)
    }

    /// One window earlier; the first timestamp if there is no such instant.
    pub fn before(self, at: Timestamp) -> Timestamp {
        at.checked_sub(self.length()).unwrap_or(Timestamp::MIN)
    }

    /// Whether it can be a calendar window: below a day, or whole days.
    pub(crate) fn is_calendar(self) -> bool {
        self.0 < DAY || self.0.is_multiple_of(DAY)
    }

    /// The calendar window that holds `now`.
    pub fn calendar(self, now: Timestamp, zone: &TimeZone) -> Period {
        if self.0 < DAY || !self.is_calendar() {
            let length = i64::from(self.0);
            let start = now.as_second().div_euclid(length) * length;
            return Period { start: at(start), end: at(start + length) };
        }
        let days = i64::from(self.0 / DAY);
        let today = zone.to_datetime(now).date();
        let number = epoch_day(today).div_euclid(days) * days;
        Period { start: midnight(number, zone), end: midnight(number + days, zone) }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            60 => f.write_str("minute"),
            3600 => f.write_str("hour"),
            DAY => f.write_str("day"),
            s if s.is_multiple_of(DAY) => write!(f, "{} days", s / DAY),
            s if s.is_multiple_of(3600) => write!(f, "{} hours", s / 3600),
            s if s.is_multiple_of(60) => write!(f, "{} minutes", s / 60),
            s => write!(f, "{s} seconds"),
        }
    }
}

impl Window {
    /// As a length: `one minute`, `90 seconds`.
    pub(crate) fn spelled(self) -> String {
        let text = self.to_string();
        if text.starts_with(|c: char| c.is_ascii_digit()) { text } else { format!("one {text}") }
    }
}

/// One calendar window: `start` belongs to it, `end` to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Period {
    /// First instant.
    pub start: Timestamp,
    /// First instant of the next window.
    pub end: Timestamp,
}

/// Whole seconds from `now` until `then`, rounded up, at least one.
pub(crate) fn seconds_until(now: Timestamp, then: Timestamp) -> u64 {
    let left = then.duration_since(now);
    let whole = left.as_secs() + i64::from(left.subsec_nanos() > 0);
    u64::try_from(whole).unwrap_or_default().max(1)
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or(if second < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    })
}

fn epoch_day(date: Date) -> i64 {
    date.duration_since(Date::constant(1970, 1, 1)).as_hours() / 24
}

/// The first instant of a local day, given as days since 1970-01-01.
fn midnight(day: i64, zone: &TimeZone) -> Timestamp {
    let date = Date::constant(1970, 1, 1)
        .checked_add(SignedDuration::from_hours(day.saturating_mul(24)))
        .unwrap_or(if day < 0 { Date::MIN } else { Date::MAX });
    zone.to_timestamp(date.at(0, 0, 0, 0))
        .unwrap_or_else(|_| at(day.saturating_mul(i64::from(DAY))))
}

#[cfg(test)]
mod tests;
