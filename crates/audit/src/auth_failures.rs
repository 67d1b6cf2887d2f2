//! Failed authentication as few rows.
//!
//! Of one (listener, reason, address) the first ten refusals a minute are rows; the rest are
//! counted and become one row when the minute is over. Minutes are those of the Unix clock.
//!
//! Invariant: strangers decide neither how much memory this takes nor how many rows it gives: of
//! one (listener, reason) 16 addresses are told apart in a minute, the others are counted together;
//! and beyond 300 rows everything of that minute is counted.

use std::collections::HashMap;
use std::net::IpAddr;

use jiff::Timestamp;

use crate::{Draft, RowKind};

/// Refusals of one address that are rows, each minute.
const ROWS: u64 = 10;
/// Addresses of one listener and reason that are told apart, each minute.
const ADDRESSES: usize = 16;
/// Rows in all, each minute, but for those that carry a count.
const MOST: u64 = 300;

/// Somebody was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AuthFailure {
    /// Where: `mcp`, `sessions`, `admin` or `metrics`.
    pub listener: &'static str,
    /// Why, in one word.
    pub reason: &'static str,
    /// From where.
    pub peer: Option<IpAddr>,
}

/// Counts the refusals of the current minute.
#[derive(Debug, Default)]
pub struct AuthFailureCounter {
    minute: i64,
    rows: u64,
    seen: HashMap<AuthFailure, Tally>,
}

#[derive(Debug, Default)]
struct Tally {
    refusals: u64,
    /// Those that are no rows.
    more: u64,
    /// When it began, so that rows come out in a stable order.
    order: usize,
}

impl AuthFailureCounter {
    /// Takes a refusal; its row, unless it is only counted. Call [`AuthFailureCounter::due`] first: it ends
    /// the minute before.
    pub fn refused(&mut self, refusal: AuthFailure, now: Timestamp) -> Option<Draft> {
        let key = self.key(refusal);
        let order = self.seen.len();
        let tally = self.seen.entry(key).or_insert(Tally { order, ..Tally::default() });
        tally.refusals += 1;
        if tally.refusals <= ROWS && self.rows < MOST {
            self.rows += 1;
            return Some(row(refusal, None, now));
        }
        tally.more += 1;
        None
    }

    /// Under what it is counted: without its address, once there are too many.
    fn key(&self, refusal: AuthFailure) -> AuthFailure {
        let alike = |other: &&AuthFailure| {
            (other.listener, other.reason) == (refusal.listener, refusal.reason)
                && other.peer.is_some()
        };
        if self.seen.contains_key(&refusal) || self.seen.keys().filter(alike).count() < ADDRESSES {
            return refusal;
        }
        AuthFailure { peer: None, ..refusal }
    }

    /// What was only counted in the minute before, once `now` is in another one. A clock that steps
    /// back a little ends nothing; one that was far ahead must not keep later ones silent.
    pub fn due(&mut self, now: Timestamp) -> Vec<(AuthFailure, u64, Draft)> {
        let minute = now.as_second().div_euclid(60);
        if minute == self.minute || minute == self.minute - 1 {
            return Vec::new();
        }
        self.minute = minute;
        self.flush(now)
    }

    /// The same before the minute is over: at a stop, or when an earlier clock was accepted.
    pub fn flush(&mut self, now: Timestamp) -> Vec<(AuthFailure, u64, Draft)> {
        self.rows = 0;
        let mut counted: Vec<(AuthFailure, Tally)> = self.seen.drain().collect();
        counted.sort_by_key(|(_, tally)| tally.order);
        let counted = counted.into_iter().filter(|(_, tally)| tally.more > 0);
        counted
            .map(|(refusal, Tally { more, .. })| (refusal, more, row(refusal, Some(more), now)))
            .collect()
    }

    /// Forgets which minute it is: an earlier clock was accepted.
    pub fn restart(&mut self, now: Timestamp) -> Vec<(AuthFailure, u64, Draft)> {
        self.minute = 0;
        self.flush(now)
    }
}

fn row(refusal: AuthFailure, count: Option<u64>, now: Timestamp) -> Draft {
    let AuthFailure { listener, reason, peer } = refusal;
    let of_sessions = listener == "sessions";
    let mut row = Draft::new(if of_sessions { RowKind::Session } else { RowKind::Refused }, now);
    row.via = Some(listener.into());
    row.server = of_sessions.then(|| listener.into());
    let from = peer.map(|peer| peer.to_string());
    let whence = from.as_deref().unwrap_or("several addresses");
    // Rows about sessions have a word of their own for it.
    let code = if of_sessions && reason.ends_with("token") { "token_refused" } else { reason };
    row.error_code = Some(code.into());
    let what = if code == reason { "refused" } else { code };
    row.message = Some(format!("{what}: {reason} from {whence}").into());
    row.client = from.map(Into::into);
    row.count = count;
    row
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
        let mut refusals = AuthFailureCounter::default();
        assert!(refusals.due(at(60)).is_empty());
        let rows: Vec<_> = (0..1_000).filter_map(|_| refusals.refused(from(1), at(61))).collect();
        assert_eq!(rows.len(), 10);
        let row = rows.first().unwrap();
        assert_eq!((row.kind, row.client.as_deref()), (RowKind::Refused, Some("2001:db8::1")));
        assert_eq!(
            (row.via.as_deref(), row.error_code.as_deref()),
            (Some("mcp"), Some("bad_token"))
        );
        assert!(refusals.due(at(119)).is_empty() && refusals.due(at(30)).is_empty());
        let rest = refusals.due(at(120));
        let [(refusal, 990, row)] = rest.as_slice() else { panic!("{rest:?}") };
        assert_eq!((refusal, row.count), (&from(1), Some(990)));
        assert!(refusals.refused(from(1), at(121)).is_some(), "a new minute");
        let year = 31_536_000;
        assert!(refusals.due(at(year)).is_empty());
        assert!((0..20).filter(|_| refusals.refused(from(1), at(year)).is_some()).count() == 10);
        assert_eq!(refusals.due(at(180)).len(), 1, "the clock was ahead");
        assert!(refusals.refused(from(1), at(181)).is_some());
    }

    #[test]
    fn many_addresses_are_bounded() {
        let mut refusals = AuthFailureCounter::default();
        let rows = (0..50_000_u32)
            .filter(|n| refusals.refused(from(u16::try_from(n % 5_000).unwrap()), at(1)).is_some());
        let rows = rows.count();
        assert_eq!(rows, ADDRESSES * 10 + 10);
        assert_eq!(refusals.seen.len(), ADDRESSES + 1);
        let rest = refusals.due(at(60));
        let counted: u64 = rest.iter().map(|(_, count, _)| count).sum();
        assert_eq!(usize::try_from(counted).unwrap() + rows, 50_000, "none is lost");
        // Whatever the listener and the reason.
        let reasons = ["a", "b", "c", "d", "e"];
        let all = (0..50_u16).flat_map(|n| reasons.map(|reason| AuthFailure { reason, ..from(n) }));
        let rows = all.filter(|one| refusals.refused(*one, at(61)).is_some()).count();
        assert!(rows <= 300, "{rows}");
    }

    #[test]
    fn failures_of_the_sessions_listener_are_session_rows() {
        let refusal = AuthFailure { listener: "sessions", reason: "no_token", peer: None };
        let row = AuthFailureCounter::default().refused(refusal, at(1)).unwrap();
        assert_eq!((row.kind, row.server.as_deref()), (RowKind::Session, Some("sessions")));
        assert_eq!(row.message.as_deref(), Some("token_refused: no_token from several addresses"));
    }
}
