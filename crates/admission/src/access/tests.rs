use std::cell::Cell;

use super::*;

thread_local! {
    /// How often two tokens were compared.
    pub(super) static COMPARED: Cell<usize> = const { Cell::new(0) };
}

fn token(number: usize) -> String {
    format!("token-{number}")
}

/// How many comparisons it takes to find each of some grants among so many, and to find nobody.
fn work(grants: usize) -> (usize, usize) {
    let all = (0..grants).map(|number| {
        let label = format!("grant-{number}").into();
        let grant = Grant { label, ..Grant::default() };
        (Hash::of(token(number).as_bytes()), Arc::new(grant))
    });
    let access = Access::new(None, all);
    let now = Timestamp::UNIX_EPOCH;
    let counted = |look: &dyn Fn()| {
        COMPARED.set(0);
        look();
        COMPARED.get()
    };
    let found = counted(&|| {
        for number in (0..grants).step_by(grants / LOOKS) {
            let grant = access.caller(Some(&token(number)), now).unwrap();
            assert_eq!(*grant.label, format!("grant-{number}"));
        }
    });
    let nobody = counted(&|| {
        for number in grants..grants + LOOKS {
            assert!(access.caller(Some(&token(number)), now).is_none());
        }
    });
    (found, nobody)
}

const LOOKS: usize = 10;

#[test]
fn finding_a_grant_is_as_much_work_among_ten_as_among_ten_thousand() {
    for grants in [10, 10_000] {
        let (found, nobody) = work(grants);
        // One each, and now and then one more whose hash begins alike.
        assert!((LOOKS..2 * LOOKS).contains(&found), "{grants} grants: {found}");
        assert!(nobody < LOOKS, "{grants} grants: {nobody}");
    }
}

#[test]
fn a_grant_is_good_until_the_moment_it_expires() {
    let end = Timestamp::from_second(1_000).unwrap();
    let grant = |expires| Arc::new(Grant { label: "g".into(), expires, ..Grant::default() });
    let hash = Hash::of(token(0).as_bytes());
    for (expires, at, good) in [
        (Some(end), end - jiff::SignedDuration::from_nanos(1), true),
        (Some(end), end, false),
        (Some(end), end + jiff::SignedDuration::from_hours(1), false),
        (None, Timestamp::MAX, true),
    ] {
        let access = Access::new(None, [(hash, grant(expires))]);
        assert_eq!(access.caller(Some(&token(0)), at).is_some(), good, "{expires:?} at {at}");
        // Local mode is a grant like any other.
        let access = Access::new(Some(grant(expires)), []);
        assert_eq!(access.caller(None, at).is_some(), good, "{expires:?} at {at}");
    }
}
