use std::cell::Cell;

use super::*;

thread_local! {
    /// How often two tokens were compared.
    pub(super) static COMPARED: Cell<usize> = const { Cell::new(0) };
}

fn token(number: usize) -> String {
    format!("token-{number}")
}

/// The number of comparisons for ten successful lookups among so many grants, and for ten failed ones.
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
    let failed = counted(&|| {
        for number in grants..grants + LOOKS {
            assert!(access.caller(Some(&token(number)), now).is_none());
        }
    });
    (found, failed)
}

const LOOKS: usize = 10;

#[test]
fn a_lookup_takes_as_many_comparisons_among_ten_grants_as_among_ten_thousand() {
    for grants in [10, 10_000] {
        let (found, failed) = work(grants);
        // One each, and rarely one more for a hash with the same bucket.
        assert!((LOOKS..2 * LOOKS).contains(&found), "{grants} grants: {found}");
        assert!(failed < LOOKS, "{grants} grants: {failed}");
    }
}

#[test]
fn a_grant_is_valid_until_it_expires() {
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
