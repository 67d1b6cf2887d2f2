//! Cases about reading the audit.

use jiff::Timestamp;
use toolgate_audit::{Decision, Draft, Row, RowKind};
use toolgate_dice::Dice;

use super::{StoreFixture, all_rows, at, wait};
use crate::{RowQuery, Store};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Rows with random values, whose times do not always ascend.
fn write_rows(store: &dyn Store, dice: &mut Dice) {
    for number in 0..400 {
        let mut draft = Draft::new(dice.pick(RowKind::ALL), at(1_000 + number - dice.below(20)));
        let mut name = || (dice.below(2) == 0).then(|| dice.pick(&NAMES).into());
        (draft.grant, draft.tool, draft.person) = (name(), name(), name());
        (draft.server, draft.session_id, draft.error_code) = (name(), name(), name());
        draft.decision = (dice.below(2) == 0).then(|| dice.pick(Decision::ALL));
        wait(store.record(draft)).unwrap();
    }
}

fn random_query(dice: &mut Dice) -> RowQuery {
    let mut query = RowQuery { limit: 1 + dice.below(500), ..RowQuery::default() };
    query.newest_first = dice.below(2) == 0;
    for filter in [
        &mut query.grant,
        &mut query.tool,
        &mut query.person,
        &mut query.server,
        &mut query.session,
        &mut query.code,
    ] {
        *filter = (dice.below(4) == 0).then(|| dice.pick(&NAMES).to_owned());
    }
    query.decision = (dice.below(6) == 0).then(|| dice.pick(Decision::ALL));
    query.kind = (dice.below(4) == 0).then(|| dice.pick(RowKind::ALL));
    let mut time = || (dice.below(3) == 0).then(|| at(950 + dice.below(500)));
    (query.since, query.until) = (time(), time());
    query.after = if dice.below(4) == 0 { dice.below(400) } else { 0 };
    query.before = (dice.below(4) == 0).then(|| dice.below(450));
    query
}

/// What a query selects, written out naively.
fn selected(rows: &[Row], query: &RowQuery) -> Vec<u64> {
    let mut found: Vec<u64> = Vec::new();
    for Row { seq, draft, .. } in rows {
        let texts = [
            (&query.grant, &draft.grant),
            (&query.tool, &draft.tool),
            (&query.person, &draft.person),
            (&query.server, &draft.server),
            (&query.session, &draft.session_id),
            (&query.code, &draft.error_code),
        ];
        let same = texts.iter().all(|(wanted, value)| match wanted {
            Some(wanted) => value.as_deref() == Some(wanted.as_str()),
            None => true,
        });
        let (since, until) = (query.since, query.until);
        let in_time = since.unwrap_or(Timestamp::MIN) <= draft.time
            && draft.time < until.unwrap_or(Timestamp::MAX);
        let in_place = query.after < *seq && *seq < query.before.unwrap_or(u64::MAX);
        let decided = query.decision.is_none() || query.decision == draft.decision;
        let kind = query.kind.is_none() || query.kind == Some(draft.kind);
        if same && in_time && in_place && decided && kind {
            found.push(*seq);
        }
    }
    if query.newest_first {
        found.reverse();
    }
    found
}

/// Filters, order and limit of random queries select what a naive scan of all rows selects.
pub fn queries_select_matching_rows(fixture: &dyn StoreFixture) {
    let mut dice = Dice::new(0x1157);
    let store = fixture.open(at(0));
    write_rows(&*store, &mut dice);
    let rows = all_rows(&*store);
    for _ in 0..500 {
        let query = random_query(&mut dice);
        let expected = selected(&rows, &query);
        let count = wait(store.count_rows(query.clone())).unwrap();
        assert_eq!(count, u64::try_from(expected.len()).unwrap(), "{query:?}");
        let found = wait(store.rows(query.clone())).unwrap();
        let found: Vec<u64> = found.iter().map(|row| row.seq).collect();
        let first: Vec<u64> = expected.into_iter().take(query.limit).collect();
        assert_eq!(found, first, "{query:?}");
    }
}

/// Rows from before an earlier clock was accepted are found by their own, later times.
pub fn queries_survive_an_accepted_clock(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let ahead = 86_400 * 365;
    for second in [100, 200, ahead, ahead + 1] {
        wait(store.record(Draft::new(RowKind::Drift, at(second)))).unwrap();
    }
    let row = Draft::new(RowKind::Admin, at(300));
    wait(store.change(crate::Change::AcceptClock, row)).unwrap();
    for second in [400, 4_000, 40_000] {
        wait(store.record(Draft::new(RowKind::Drift, at(second)))).unwrap();
        store.tick(at(second));
    }
    let rows = all_rows(&*store);
    for since in [0, 150, 350, 500, 5_000, 50_000, ahead, ahead + 1, ahead + 2] {
        let query = RowQuery { since: Some(at(since)), limit: 100, ..RowQuery::default() };
        let expected = selected(&rows, &query);
        let found = wait(store.rows(query)).unwrap();
        let found: Vec<u64> = found.iter().map(|row| row.seq).collect();
        assert_eq!(found, expected, "since {since}");
    }
}
