//! Cases about counting.

use std::{sync::Arc, thread};

use jiff::Timestamp;
use toolgate_audit::{Draft, Effect, Outcome, RowKind};

use super::{StoreFixture, TestAgent, all_rows, assert_whole, at, calls::end};
use crate::{Change, Store};

/// How many of `asked` calls are admitted when eight threads call concurrently.
fn storm(
    store: &Arc<dyn Store>,
    tool: &str,
    arguments: &str,
    asked: usize,
    now: Timestamp,
) -> usize {
    let agent = TestAgent::new(store, "storm");
    thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let agent = agent.clone();
                let share = asked / 8;
                scope.spawn(move || {
                    (0..share).filter(|_| agent.call_through(tool, arguments, now)).count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

/// A limit of N admits N, never N + 1, and the rows show every step of the counter.
pub fn calendar_limits_are_exact(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(600));
    assert_eq!(storm(&store, "close", "{}", 64, at(600)), 30);
    assert_eq!(storm(&store, "close", "{}", 16, at(659)), 0);
    assert_eq!(storm(&store, "close", "{}", 64, at(660)), 30);
    let rows = all_rows(&*store);
    let counts = rows.iter().filter_map(|row| row.draft.counters.first());
    let after: Vec<String> = counts.map(|change| change.after.to_string()).collect();
    let expected: Vec<String> = (1..=30).chain(1..=30).map(|n: u8| n.to_string()).collect();
    assert_eq!(after, expected);
    let agent = TestAgent::new(&store, "other");
    assert!(agent.call_through("close", "{}", at(660)), "another grant has its own counter");
    let refused = TestAgent::new(&store, "storm").admit("close", "{}", at(661)).unwrap_err();
    assert_eq!(refused.rule.as_deref(), Some("/tools/close/limits/close_rate"));
    assert_eq!(refused.retry_after, Some(59));
    assert_whole(&*store);
}

/// No window ever exceeds the limit.
pub fn sliding_limits_are_exact(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    assert_eq!(storm(&store, "slide", "{}", 16, at(30)), 16);
    assert_eq!(storm(&store, "slide", "{}", 64, at(60)), 14);
    assert_eq!(storm(&store, "slide", "{}", 8, at(89)), 0);
    assert_eq!(storm(&store, "slide", "{}", 64, at(90)), 16);
    assert_eq!(storm(&store, "slide", "{}", 64, at(120)), 14);
    assert_whole(&*store);
}

/// Sums are exact decimals.
pub fn sums_are_exact(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "a");
    assert_eq!(storm(&store, "spend", r#"{"amount":0.1}"#, 800, at(5)), 800);
    let agent_of_storm = agent.with_grant("storm");
    assert!(agent_of_storm.call_through("spend", r#"{"amount":20.5}"#, at(5)));
    assert!(!agent_of_storm.call_through("spend", r#"{"amount":0.000000000000000001}"#, at(5)));
    assert!(agent_of_storm.call_through("spend", r#"{"amount":0}"#, at(5)));
    assert!(!agent_of_storm.call_through("spend", r#"{"amount":-1}"#, at(5)));
    assert!(!agent.call_through("spend", r#"{"amount":101}"#, at(5)));
    assert!(agent.call_through("spend", r#"{"amount":100.5}"#, at(5)));
    assert_whole(&*store);
}

/// A sum near the largest amount is refused when it would pass it, and never begins again at zero.
pub fn sums_near_the_maximum_never_overflow(fixture: &dyn StoreFixture) {
    const LARGEST: &str = "100000000000000000000";
    let store = fixture.open(at(0));
    for (first, then, admitted) in [
        (LARGEST, "0", true),
        (LARGEST, "0.000000000000000001", false),
        (LARGEST, LARGEST, false),
        ("99999999999999999999", "1", true),
        ("99999999999999999999", "1.000000000000000001", false),
        ("60000000000000000000", "40000000000000000000.5", false),
        ("1", LARGEST, false),
    ] {
        let agent = TestAgent::new(&store, &format!("{first} and {then}"));
        let spend =
            |amount: &str| agent.call_through("pile", &format!(r#"{{"amount":{amount}}}"#), at(5));
        assert!(spend(first), "{first}");
        assert_eq!(spend(then), admitted, "{first} and {then}");
        // Numbers that do not fit the type that counts, wrapped around to a little or to nothing.
        for outside in ["100000000000000000001", "340282366920938463464", "4e20", "1e39", "1e400"] {
            assert!(!spend(outside), "{outside}");
        }
        assert!(spend("0"), "what was refused has not been counted");
    }
    assert_whole(&*store);
}

/// Calls stop being in flight with their outcome, even if it is unknown.
pub fn calls_in_flight_are_limited(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "a");
    let admit = || agent.admit("run", "{}", at(1));
    let (one, two, three) = (admit().unwrap(), admit().unwrap(), admit().unwrap());
    assert!(admit().is_err());
    end(one, Outcome::Ok, Effect::Done, at(2));
    let four = admit().unwrap();
    assert!(admit().is_err());
    end(two, Outcome::Unavailable, Effect::NotStarted, at(2));
    drop(three);
    let (five, six) = (admit().unwrap(), admit().unwrap());
    assert!(admit().is_err());
    for admitted in [four, five, six] {
        end(admitted, Outcome::Timeout, Effect::Unknown, at(3));
    }
    // After eight concurrent threads, of which three may run at a time, three slots are free.
    assert!(storm(&store, "run", "{}", 400, at(4)) >= 3);
    let room: Vec<_> = (0..9).filter_map(|_| admit().ok()).collect();
    assert_eq!(room.len(), 3);
    for admitted in room {
        end(admitted, Outcome::Ok, Effect::Done, at(5));
    }
    assert_whole(&*store);
}

/// Only calls that were never sent are refunded, and only to the window they were taken from.
pub fn refunds_go_to_their_own_window(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "a");
    let admit = |now| agent.admit("both", "{}", at(now));
    let room = |now| (0..9).take_while(|_| agent.call_through("both", "{}", at(now))).count();
    let taken: Vec<_> = (0..5).map(|_| admit(10).unwrap()).collect();
    assert!(admit(10).is_err());
    for (admitted, effect) in taken.into_iter().zip([
        Effect::Done,
        Effect::Unknown,
        Effect::NotStarted,
        Effect::NotStarted,
        Effect::Done,
    ]) {
        end(admitted, Outcome::Unavailable, effect, at(11));
    }
    // Both counters have two left again: the minute's and the hour's.
    let late = admit(12).unwrap();
    assert_eq!(room(12), 1);
    // The minute is over; five of the hour's seven are taken.
    let early = admit(60).unwrap();
    end(late, Outcome::Unavailable, Effect::NotStarted, at(61));
    // This refunded one to the hour, and nothing to the new minute, which has one taken.
    assert_eq!(room(62), 2);
    end(early, Outcome::Unavailable, Effect::NotStarted, at(63));
    assert_eq!(room(64), 1);
    assert_whole(&*store);
}

/// The same call again is a repeat, unless the first was never sent.
pub fn repeats_are_refused(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "a");
    let unsent = agent.admit("once", r#"{"n":1}"#, at(0)).unwrap();
    assert!(agent.admit("once", r#"{"n":1}"#, at(0)).is_err());
    end(unsent, Outcome::Unavailable, Effect::NotStarted, at(1));
    assert_eq!(storm(&store, "once", r#"{ "n": 1 }"#, 64, at(1)), 1);
    assert!(agent.call_through("once", r#"{"n":1}"#, at(1)), "another grant");
    assert!(agent.call_through("once", r#"{"n":2}"#, at(1)), "other arguments");
    assert!(!agent.call_through("once", r#"{"n":1}"#, at(300)));
    assert!(agent.call_through("once", r#"{"n":1}"#, at(301)));
    assert_whole(&*store);
}

/// A backward clock step refills nothing, not even after a restart.
pub fn time_never_runs_backwards(fixture: &dyn StoreFixture) {
    let mut store = fixture.open(at(600));
    assert_eq!(storm(&store, "close", "{}", 64, at(600)), 30);
    assert_eq!(storm(&store, "slide", "{}", 64, at(600)), 30);
    for second in [599, 540, 0, -5] {
        if fixture.is_durable() {
            super::wait(store.close(at(second))).unwrap();
            store = fixture.open(at(second));
        }
        assert_eq!(storm(&store, "close", "{}", 8, at(second)), 0, "{second}");
        assert_eq!(storm(&store, "slide", "{}", 8, at(second)), 0, "{second}");
    }
    // Pruning uses the effective time, not the clock.
    store.tick(at(700));
    store.tick(at(10));
    assert_eq!(storm(&store, "close", "{}", 64, at(610)), 30, "700 is the effective minute");
    assert_eq!(storm(&store, "close", "{}", 8, at(700)), 0);
    assert_whole(&*store);
}

/// A person can accept an earlier clock after it was far ahead; counts are retained.
pub fn a_clock_can_be_accepted(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(600));
    let ahead = 86_400 * 365;
    assert_eq!(storm(&store, "close", "{}", 64, at(600)), 30);
    assert_eq!(storm(&store, "close", "{}", 64, at(ahead)), 30);
    assert_eq!(storm(&store, "slide", "{}", 64, at(ahead)), 30);
    assert_eq!(storm(&store, "once", "{}", 8, at(ahead)), 1);
    assert_eq!(storm(&store, "close", "{}", 8, at(660)), 0, "time does not move");
    let other = fixture.is_durable().then(|| fixture.open(at(665)));
    let row = Draft::new(RowKind::Admin, at(670));
    super::wait(store.change(Change::AcceptClock, row)).unwrap();
    for tool in ["close", "slide", "once"] {
        assert_eq!(storm(&store, tool, "{}", 8, at(671)), 0, "{tool}: nothing is refilled");
    }
    assert_eq!(super::wait(store.status()).unwrap().mark, at(671));
    assert_eq!(storm(&store, "close", "{}", 64, at(720)), 30, "and time continues");
    assert_eq!(storm(&store, "slide", "{}", 64, at(729)), 0);
    // Another process does not restore the old time.
    if let Some(other) = other {
        assert_eq!(storm(&other, "slide", "{}", 8, at(729)), 0);
        other.tick(at(729));
    }
    assert_eq!(storm(&store, "slide", "{}", 64, at(730)), 30);
    assert_eq!(storm(&store, "close", "{}", 64, at(780)), 30);
    assert_whole(&*store);
}
