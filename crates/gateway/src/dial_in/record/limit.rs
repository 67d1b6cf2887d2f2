//! Rate limit for rows about session events.
//!
//! Of each kind of event, one session gives at most [`ROWS_OF_SESSION`] rows a minute and all sessions
//! together [`ROWS_OF_KIND`]. Rejections are limited without regard to the session, because a program
//! chooses the id that it is rejected under.
//!
//! Invariant: no event is lost: rows and counts of a minute add up to its events.
//! Invariant: memory is bounded: sessions are told apart only while their kind of event has rows left.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use toolgate_session::SessionEventKind;

use super::is_refusal;

const ROWS_OF_SESSION: u64 = 10;
const ROWS_OF_KIND: u64 = 1_000;
const MINUTE: Duration = Duration::from_mins(1);

/// The events of the current minute.
#[derive(Debug, Default)]
pub(super) struct EventLimit {
    /// When the minute began: with its first event.
    since: Option<Instant>,
    /// Rows of each kind of event.
    rows: HashMap<SessionEventKind, u64>,
    events: HashMap<(SessionEventKind, Option<Arc<str>>), Tally>,
}

#[derive(Debug, Default)]
struct Tally {
    rows: u64,
    left_out: u64,
}

/// Events that have no rows of their own.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) what: SessionEventKind,
    /// The session; none if there were several, or if it does not matter.
    pub(super) session_id: Option<Arc<str>>,
    pub(super) count: u64,
}

impl EventLimit {
    /// Whether an event gets a row of its own; otherwise it is counted.
    pub(super) fn admits(
        &mut self,
        what: SessionEventKind,
        session: Option<&Arc<str>>,
        now: Instant,
    ) -> bool {
        self.since.get_or_insert(now);
        let rows = self.rows.entry(what).or_default();
        let is_full = *rows >= ROWS_OF_KIND;
        let session = session.filter(|_| !is_rejection(what)).cloned();
        let mut key = (what, session);
        if is_full && !self.events.contains_key(&key) {
            key.1 = None;
        }
        let tally = self.events.entry(key).or_default();
        if is_full || tally.rows >= ROWS_OF_SESSION {
            tally.left_out += 1;
            return false;
        }
        *rows += 1;
        tally.rows += 1;
        true
    }

    /// Counts an event that was admitted and gets no row after all.
    pub(super) fn leave_out(&mut self, what: SessionEventKind) {
        self.events.entry((what, None)).or_default().left_out += 1;
    }

    /// The counts of the minute, once it is over or at a flush.
    pub(super) fn take(&mut self, now: Instant, flush: bool) -> Vec<Counted> {
        let Some(since) = self.since else { return Vec::new() };
        if !flush && now.saturating_duration_since(since) < MINUTE {
            return Vec::new();
        }
        self.since = None;
        self.rows.clear();
        let left_out = self.events.drain().filter(|(_, tally)| tally.left_out > 0);
        let mut counted: Vec<Counted> = left_out
            .map(|((what, session_id), tally)| Counted { what, session_id, count: tally.left_out })
            .collect();
        counted.sort_by(|a, b| (a.what, &a.session_id).cmp(&(b.what, &b.session_id)));
        counted
    }
}

/// Events that do not need a registered session.
fn is_rejection(what: SessionEventKind) -> bool {
    is_refusal(what) || matches!(what, SessionEventKind::NotRegistered | SessionEventKind::BadFrame)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uid(number: u64) -> Arc<str> {
        format!("u{number}").into()
    }

    #[test]
    fn a_session_gives_ten_rows_a_minute_and_a_count() {
        let (mut limit, now) = (EventLimit::default(), Instant::now());
        let fought = uid(1);
        let storm =
            (0..500).filter(|_| limit.admits(SessionEventKind::TakenOver, Some(&fought), now));
        assert_eq!(storm.count(), 10);
        assert!(
            limit.admits(SessionEventKind::TakenOver, Some(&uid(2)), now),
            "a neighbour has its own rows"
        );
        assert!(limit.admits(SessionEventKind::Bye, Some(&fought), now), "so has another event");
        assert_eq!(limit.take(now + MINUTE / 2, false), []);
        let counted =
            Counted { what: SessionEventKind::TakenOver, session_id: Some(fought), count: 490 };
        assert_eq!(limit.take(now + MINUTE, false), [counted]);
        assert!(limit.admits(SessionEventKind::TakenOver, Some(&uid(1)), now), "a new minute");
    }

    #[test]
    fn new_ids_do_not_give_more_rows() {
        let (mut limit, now) = (EventLimit::default(), Instant::now());
        let admitted = |limit: &mut EventLimit, what| {
            (0..5_000).filter(|n| limit.admits(what, Some(&uid(*n)), now)).count()
        };
        assert_eq!(admitted(&mut limit, SessionEventKind::Registered), 1_000);
        assert_eq!(admitted(&mut limit, SessionEventKind::RegisterRefused), 10);
        limit.leave_out(SessionEventKind::Registered);
        assert!(limit.events.len() <= 1_002, "{}", limit.events.len());
        let counts: Vec<_> = limit.take(now, true).into_iter().map(|one| one.count).collect();
        assert_eq!(counts, [4_001, 4_990], "none is lost");
    }
}
