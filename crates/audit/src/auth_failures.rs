//! Records failed authentication in few rows.
//!
//! For each (listener, reason, address), the first ten failures per minute are rows; further ones
//! are counted and become one row when the minute ends. Minutes are those of the Unix clock.
//!
//! Invariant: unauthenticated clients control neither memory nor the number of rows: per (listener,
//! reason) and minute, 16 addresses are distinguished and the others are counted together; after
//! 300 rows, all failures of that minute are only counted.

use std::collections::HashMap;
use std::net::IpAddr;

use jiff::Timestamp;

use crate::{Draft, RowKind};

/// Rows per address and minute.
const ROWS: u64 = 10;
/// Addresses distinguished per listener, reason and minute.
const ADDRESSES: usize = 16;
/// Rows per minute in total, without those that carry a count.
const MOST: u64 = 300;

/// A rejected connection or request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AuthFailure {
    /// The listener: `mcp`, `sessions`, `admin` or `metrics`.
    pub listener: &'static str,
    /// The reason, as a short identifier.
    pub reason: &'static str,
    /// The address of the client.
    pub peer: Option<IpAddr>,
}

/// Counts the failures of the current minute.
#[derive(Debug, Default)]
pub struct AuthFailureCounter {
    minute: i64,
    rows: u64,
    seen: HashMap<AuthFailure, Tally>,
}

#[derive(Debug, Default)]
struct Tally {
    failures: u64,
    /// Failures without a row of their own.
    more: u64,
    /// The order of the first failure, so that rows have a stable order.
    order: usize,
}

impl AuthFailureCounter {
    /// Adds a failure; returns its row, unless it is only counted. Call [`AuthFailureCounter::due`]
    /// first: it ends the previous minute.
    pub fn refused(&mut self, failure: AuthFailure, now: Timestamp) -> Option<Draft> {
        let key = self.key(failure);
        let order = self.seen.len();
        let tally = self.seen.entry(key).or_insert(Tally { order, ..Tally::default() });
        tally.failures += 1;
        if tally.failures <= ROWS && self.rows < MOST {
            self.rows += 1;
            return Some(row(failure, None, now));
        }
        tally.more += 1;
        None
    }

    /// The key for counting: without the address, once there are too many.
    fn key(&self, failure: AuthFailure) -> AuthFailure {
        let alike = |other: &&AuthFailure| {
            (other.listener, other.reason) == (failure.listener, failure.reason)
                && other.peer.is_some()
        };
        if self.seen.contains_key(&failure) || self.seen.keys().filter(alike).count() < ADDRESSES {
            return failure;
        }
        AuthFailure { peer: None, ..failure }
    }

    /// The counted failures of the previous minute, once `now` is in another one. A small backward
    /// clock step ends nothing; a clock that was far ahead must not suppress later failures.
    pub fn due(&mut self, now: Timestamp) -> Vec<(AuthFailure, u64, Draft)> {
        let minute = now.as_second().div_euclid(60);
        if minute == self.minute || minute == self.minute - 1 {
            return Vec::new();
        }
        self.minute = minute;
        self.flush(now)
    }

    /// The same before the minute ends: at shutdown, or when a person accepts an earlier clock.
    pub fn flush(&mut self, now: Timestamp) -> Vec<(AuthFailure, u64, Draft)> {
        self.rows = 0;
        let mut counted: Vec<(AuthFailure, Tally)> = self.seen.drain().collect();
        counted.sort_by_key(|(_, tally)| tally.order);
        let counted = counted.into_iter().filter(|(_, tally)| tally.more > 0);
        counted
            .map(|(failure, Tally { more, .. })| (failure, more, row(failure, Some(more), now)))
            .collect()
    }

    /// Resets the minute, because a person accepted an earlier clock.
    pub fn restart(&mut self, now: Timestamp) -> Vec<(AuthFailure, u64, Draft)> {
        self.minute = 0;
        self.flush(now)
    }
}

fn row(failure: AuthFailure, count: Option<u64>, now: Timestamp) -> Draft {
    let AuthFailure { listener, reason, peer } = failure;
    let of_sessions = listener == "sessions";
    let mut row = Draft::new(if of_sessions { RowKind::Session } else { RowKind::Refused }, now);
    row.via = Some(listener.into());
    row.server = of_sessions.then(|| listener.into());
    let from = peer.map(|peer| peer.to_string());
    let whence = from.as_deref().unwrap_or("several addresses");
    // Rows about sessions use their own code.
    let code = if of_sessions && reason.ends_with("token") { "token_refused" } else { reason };
    row.error_code = Some(code.into());
    // Messages of rows about sessions begin with their code.
    let start = if code == reason { String::new() } else { format!("{code}: ") };
    let what = words(reason);
    row.message =
        Some(format!("{start}refused on the listener `{listener}`: {what}, from {whence}").into());
    row.client = from.map(Into::into);
    row.count = count;
    row
}

/// The reason in words.
fn words(reason: &'static str) -> &'static str {
    match reason {
        "no_token" => "no token",
        "bad_token" => "unknown token",
        "role" => "missing role",
        "host" => "foreign Host",
        "origin" => "foreign Origin",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn from(last: u16) -> AuthFailure {
        let peer = Some(IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last]));
        AuthFailure { listener: "mcp", reason: "bad_token", peer }
    }

    #[test]
    fn ten_rows_an_address_and_one_for_the_rest() {
        let mut failures = AuthFailureCounter::default();
        assert!(failures.due(at(60)).is_empty());
        let rows: Vec<_> = (0..1_000).filter_map(|_| failures.refused(from(1), at(61))).collect();
        assert_eq!(rows.len(), 10);
        let row = rows.first().unwrap();
        assert_eq!((row.kind, row.client.as_deref()), (RowKind::Refused, Some("2001:db8::1")));
        assert_eq!(
            (row.via.as_deref(), row.error_code.as_deref()),
            (Some("mcp"), Some("bad_token"))
        );
        assert!(failures.due(at(119)).is_empty() && failures.due(at(30)).is_empty());
        let rest = failures.due(at(120));
        let [(failure, 990, row)] = rest.as_slice() else { panic!("{rest:?}") };
        assert_eq!((failure, row.count), (&from(1), Some(990)));
        assert!(failures.refused(from(1), at(121)).is_some(), "a new minute");
        let year = 31_536_000;
        assert!(failures.due(at(year)).is_empty());
        assert!((0..20).filter(|_| failures.refused(from(1), at(year)).is_some()).count() == 10);
        assert_eq!(failures.due(at(180)).len(), 1, "the clock was ahead");
        assert!(failures.refused(from(1), at(181)).is_some());
    }

    #[test]
    fn many_addresses_are_bounded() {
        let mut failures = AuthFailureCounter::default();
        let rows = (0..50_000_u32)
            .filter(|n| failures.refused(from(u16::try_from(n % 5_000).unwrap()), at(1)).is_some());
        let rows = rows.count();
        assert_eq!(rows, ADDRESSES * 10 + 10);
        assert_eq!(failures.seen.len(), ADDRESSES + 1);
        let rest = failures.due(at(60));
        let counted: u64 = rest.iter().map(|(_, count, _)| count).sum();
        assert_eq!(usize::try_from(counted).unwrap() + rows, 50_000, "none is lost");
        // For any listener and reason.
        let reasons = ["a", "b", "c", "d", "e"];
        let all = (0..50_u16).flat_map(|n| reasons.map(|reason| AuthFailure { reason, ..from(n) }));
        let rows = all.filter(|one| failures.refused(*one, at(61)).is_some()).count();
        assert!(rows <= 300, "{rows}");
    }

    #[test]
    fn failures_of_the_sessions_listener_are_session_rows() {
        let failure = AuthFailure { listener: "sessions", reason: "no_token", peer: None };
        let row = AuthFailureCounter::default().refused(failure, at(1)).unwrap();
        assert_eq!((row.kind, row.server.as_deref()), (RowKind::Session, Some("sessions")));
        assert_eq!(row.error_code.as_deref(), Some("token_refused"));
        assert_eq!(
            row.message.as_deref(),
            Some(
                "token_refused: refused on the listener `sessions`: no token, from several addresses"
            )
        );
    }
}
