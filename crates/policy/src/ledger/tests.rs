use std::sync::Arc;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use super::{Ledger, NoRoom, Ownership};
use crate::{Amount, Claim, Reservation, Take, Usage, Window, Yielded};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn calendar(key: &str, now: Timestamp, amount: u64, max: u64) -> Reservation {
    let period = Window::MINUTE.calendar(now, &TimeZone::UTC);
    let (amount, max) = (Amount::whole(amount), Amount::whole(max));
    reservation(key, Take::Calendar { period, amount, max })
}

fn reservation(key: &str, take: Take) -> Reservation {
    Reservation { rule: key.into(), counter: key.into(), key: key.into(), take, enforced: true }
}

fn used(ledger: &Ledger, key: &str, now: Timestamp) -> Amount {
    ledger.used(key, Window::MINUTE.calendar(now, &TimeZone::UTC)).unwrap()
}

#[test]
fn all_counters_are_taken_or_none() {
    let mut ledger = Ledger::default();
    let now = at(600);
    let both = [calendar("a", now, 1, 5), calendar("b", now, 3, 2)];
    assert_eq!(ledger.admit(&both, now).err(), Some(NoRoom { rule: Arc::from("b") }));
    assert_eq!(used(&ledger, "a", now), Amount::ZERO);
}

#[test]
fn what_was_never_sent_goes_back_to_its_own_window() {
    let mut ledger = Ledger::default();
    let first = ledger.admit(&[calendar("a", at(0), 2, 5)], at(0)).unwrap();
    let second = ledger.admit(&[calendar("a", at(0), 1, 5)], at(0)).unwrap();
    ledger.give_back(second);
    assert_eq!(used(&ledger, "a", at(0)), Amount::whole(2));
    // The next window has begun: giving back to the old one changes nothing.
    let third = ledger.admit(&[calendar("a", at(60), 4, 5)], at(60)).unwrap();
    ledger.give_back(first);
    assert_eq!(used(&ledger, "a", at(60)), Amount::whole(4));
    ledger.settle(third);
}

#[test]
fn a_clock_that_steps_back_refills_nothing() {
    let mut ledger = Ledger::default();
    let receipt = ledger.admit(&[calendar("a", at(120), 5, 5)], at(120)).unwrap();
    ledger.settle(receipt);
    assert_eq!(used(&ledger, "a", at(60)), Amount::whole(5));
    assert!(ledger.admit(&[calendar("a", at(60), 1, 5)], at(60)).is_err());
}

#[test]
fn a_sliding_log_forgets_exactly_after_its_window() {
    let mut ledger = Ledger::default();
    let take = Take::Sliding { window: Window::MINUTE, amount: Amount::ONE, max: Amount::ONE };
    let one = [reservation("s", take)];
    let receipt = ledger.admit(&one, at(0)).unwrap();
    assert!(ledger.admit(&one, at(59)).is_err());
    let again = ledger.admit(&one, at(60)).unwrap();
    ledger.give_back(again);
    let log = ledger.taken("s", at(60) - SignedDuration::from_secs(60)).unwrap();
    assert!(log.is_empty(), "{log:?}");
    ledger.settle(receipt);
}

#[test]
fn calls_in_flight_end_with_their_receipt() {
    let mut ledger = Ledger::default();
    let one = [reservation("c", Take::InFlight { max: 1 })];
    let running = ledger.admit(&one, at(0)).unwrap();
    assert!(ledger.admit(&one, at(0)).is_err());
    ledger.settle(running);
    assert_eq!(ledger.in_flight("c"), Ok(0));
    let again = ledger.admit(&one, at(0)).unwrap();
    ledger.give_back(again);
    assert_eq!(ledger.in_flight("c"), Ok(0));
}

#[test]
fn a_reservation_in_shadow_never_refuses() {
    let mut ledger = Ledger::default();
    let mut soft = calendar("a", at(0), 1, 1);
    soft.enforced = false;
    for _ in 0..3 {
        let receipt = ledger.admit(std::slice::from_ref(&soft), at(0)).unwrap();
        ledger.settle(receipt);
    }
    assert_eq!(used(&ledger, "a", at(0)), Amount::ONE);
}

#[test]
fn pruning_keeps_what_still_counts() {
    let mut ledger = Ledger::default();
    let receipt = ledger.admit(&[calendar("a", at(0), 3, 5)], at(0)).unwrap();
    ledger.settle(receipt);
    ledger.prune(at(59));
    assert_eq!(used(&ledger, "a", at(59)), Amount::whole(3));
    ledger.prune(at(60));
    assert_eq!(used(&ledger, "a", at(0)), Amount::ZERO);
}

#[test]
fn a_call_never_sent_leaves_the_earlier_mark() {
    let mut ledger = Ledger::default();
    let marks = [
        reservation("m", Take::Seen { within: Window::DAY }),
        reservation("m", Take::Seen { within: Window::MINUTE }),
    ];
    let sent = ledger.admit(&marks, at(0)).unwrap();
    ledger.settle(sent);
    let unsent = ledger.admit(&marks, at(30)).unwrap();
    assert_eq!(ledger.last_admitted("m"), Ok(Some(at(30))));
    ledger.give_back(unsent);
    ledger.prune(at(3600));
    assert_eq!(ledger.last_admitted("m"), Ok(Some(at(0))));
}

fn yielded(shared: bool, by_identity: bool) -> Yielded {
    Yielded {
        server: "s".into(),
        kind: "job".into(),
        value: "\"7\"".into(),
        keep: Window::HOUR,
        shared,
        by_identity,
    }
}

fn owns(ledger: &Ledger, grant: &str, identity: Option<&str>, now: Timestamp) -> bool {
    let claim = Claim { grant, identity, server: "s", kind: "job", value: "\"7\"", now };
    ledger.owns(&claim).unwrap()
}

#[test]
fn the_first_grant_owns_a_value_until_it_is_forgotten_or_ended() {
    let mut ledger = Ledger::default();
    assert_eq!(ledger.own(&yielded(false, false), "a", None, at(0)), Ownership::Recorded);
    assert_eq!(ledger.own(&yielded(false, false), "b", None, at(1)), Ownership::Conflict);
    assert!(owns(&ledger, "a", None, at(3599)));
    assert!(!owns(&ledger, "b", None, at(1)));
    assert!(!owns(&ledger, "a", None, at(3600)));
    assert_eq!(ledger.own(&yielded(false, false), "b", None, at(3600)), Ownership::Recorded);
    assert!(!owns(&ledger, "a", None, at(3601)));
    ledger.end("s", "job", "\"7\"");
    assert!(!owns(&ledger, "b", None, at(3601)));
}

#[test]
fn values_can_be_shared() {
    let mut ledger = Ledger::default();
    assert_eq!(ledger.own(&yielded(true, false), "a", None, at(0)), Ownership::Recorded);
    assert_eq!(ledger.own(&yielded(true, false), "b", None, at(0)), Ownership::Recorded);
    assert!(owns(&ledger, "a", None, at(1)) && owns(&ledger, "b", None, at(1)));
    let mut ledger = Ledger::default();
    assert_eq!(ledger.own(&yielded(false, true), "a", Some("desk"), at(0)), Ownership::Recorded);
    assert!(owns(&ledger, "b", Some("desk"), at(1)));
    assert!(!owns(&ledger, "b", Some("other"), at(1)));
    assert!(!owns(&ledger, "b", None, at(1)));
}

#[test]
fn a_clock_taken_back_keeps_what_was_counted() {
    let mut ledger = Ledger::default();
    let sliding = Take::Sliding { window: Window::MINUTE, amount: Amount::ONE, max: Amount::ONE };
    let ahead = at(1_000_000);
    let both = [calendar("a", ahead, 3, 3), reservation("s", sliding)];
    let receipt = ledger.admit(&both, ahead).unwrap();
    ledger.settle(receipt);
    ledger.rebase(ahead, at(90));
    assert_eq!(used(&ledger, "a", at(90)), Amount::whole(3));
    assert_eq!(used(&ledger, "a", at(120)), Amount::ZERO);
    assert!(ledger.admit(&both[1..], at(149)).is_err());
    assert!(ledger.admit(&both[1..], at(150)).is_ok());
}
