//! How many approvals of a grant are pending, as triggers count them.

use toolgate_store::suite::{
    StoreFixture, a_denial_lasts_until_it_expires, an_approval_admits_one_call,
    answers_are_of_different_valid_people, approvals_are_listed, approvals_meet_clock_steps,
    expiry_denies, limits_and_repeats_meet_approvals,
};

use crate::fixture::SqliteFixture;

const COUNTED: &str = "SELECT grant_label, count, bytes FROM pending WHERE count <> 0 ORDER BY 1";
const FOUND: &str = "SELECT grant_label, count(*), sum(size) FROM approval \
                     WHERE state = 'pending' GROUP BY 1 ORDER BY 1";

#[test]
fn pending_approvals_are_counted_as_they_change() {
    let cases: [fn(&dyn StoreFixture); 7] = [
        an_approval_admits_one_call,
        a_denial_lasts_until_it_expires,
        approvals_meet_clock_steps,
        expiry_denies,
        answers_are_of_different_valid_people,
        limits_and_repeats_meet_approvals,
        approvals_are_listed,
    ];
    let mut some = 0;
    for case in cases {
        let fixture = SqliteFixture::default();
        case(&fixture);
        let sql = fixture.sql();
        let rows = |query: &str| -> Vec<(String, i64, i64)> {
            let mut query = sql.prepare(query).unwrap();
            let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
            rows.unwrap().map(Result::unwrap).collect()
        };
        let counted = rows(COUNTED);
        assert_eq!(counted, rows(FOUND));
        some += counted.len();
    }
    assert!(some > 5, "{some}");
}
