//! The conformance suite that every store must pass.
//!
//! A store's tests call [`crate::conformance!`] with an expression that creates a [`StoreFixture`].
//! A real policy decides the calls, so that the suite tests what the gateway does.

#![expect(
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used,
    reason = "shared test code for other crates"
)]

mod approvals;
mod calls;
mod counters;
mod model;
mod queries;
mod rounds;
mod rows;
mod setup;

use std::{
    fmt,
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

use jiff::Timestamp;
use toolgate_audit::{PublicKey, Row, Signer, Verifier, VerifyReport};

pub use approvals::{
    a_denial_lasts_until_it_expires, an_approval_admits_one_call,
    answers_are_of_different_valid_people, approvals_are_listed, approvals_meet_clock_steps,
    concurrent_redeemers_get_one_call, expiry_denies, limits_and_repeats_meet_approvals,
    lists_of_large_arguments_end_early, notices_of_grants_take_turns,
    pending_approvals_of_a_grant_are_bounded, standing_exceptions_are_setup,
};
pub use calls::{POLICY, TestAgent, at};
pub use counters::{
    a_clock_can_be_accepted, calendar_limits_are_exact, calls_in_flight_are_limited,
    refunds_go_to_their_own_window, repeats_are_refused, sliding_limits_are_exact, sums_are_exact,
    sums_near_the_maximum_never_overflow, time_never_runs_backwards,
};
pub use model::random_calls_match_the_model;
pub use queries::{queries_select_matching_rows, queries_survive_an_accepted_clock};
pub use rounds::{
    a_call_continues_round_by_round, missing_rounds_end_the_call, tasks_outlive_their_process,
};
pub use rows::{
    a_dropped_ticket_is_unknown, a_held_call_leaves_no_trace,
    a_panicking_decision_fails_only_its_call, an_outcome_names_the_session,
    checkpoints_are_signed_by_age, denials_are_coalesced, denials_per_grant_are_capped,
    every_call_has_its_rows, long_texts_are_truncated, nothing_is_admitted_unless_written,
    ownership_follows_results, shadow_never_refuses,
};
pub use setup::{
    a_target_is_frozen_once, changes_are_seen_and_audited, names_are_unique,
    reopening_keeps_everything, stale_decisions_are_not_admitted,
};

use crate::{RowQuery, Store};

/// Creates a store for the tests.
pub trait StoreFixture: fmt::Debug + Send + Sync {
    /// Opens the store; further calls open the same data again.
    fn open(&self, now: Timestamp) -> Arc<dyn Store>;
    /// Makes every write fail, or succeed again.
    fn set_broken(&self, broken: bool);
    /// Whether data outlives the store.
    fn is_durable(&self) -> bool;
}

/// The key that fixtures sign with.
pub fn signer() -> Signer {
    Signer::new(&[42; 32])
}

/// One test for each case of the suite.
#[macro_export]
macro_rules! conformance {
    ($fixture:expr) => {
        $crate::conformance! { @ $fixture;
            calendar_limits_are_exact, sliding_limits_are_exact, sums_are_exact,
            sums_near_the_maximum_never_overflow, checkpoints_are_signed_by_age,
            calls_in_flight_are_limited, refunds_go_to_their_own_window, repeats_are_refused,
            time_never_runs_backwards, a_clock_can_be_accepted, ownership_follows_results, a_dropped_ticket_is_unknown,
            denials_are_coalesced, denials_per_grant_are_capped, long_texts_are_truncated,
            nothing_is_admitted_unless_written,
            a_held_call_leaves_no_trace, shadow_never_refuses,
            a_call_continues_round_by_round, missing_rounds_end_the_call,
            tasks_outlive_their_process,
            a_panicking_decision_fails_only_its_call, every_call_has_its_rows,
            an_outcome_names_the_session,
            queries_select_matching_rows, queries_survive_an_accepted_clock, a_target_is_frozen_once,
            changes_are_seen_and_audited, names_are_unique, stale_decisions_are_not_admitted,
            an_approval_admits_one_call, a_denial_lasts_until_it_expires, approvals_meet_clock_steps, expiry_denies,
            answers_are_of_different_valid_people, limits_and_repeats_meet_approvals,
            concurrent_redeemers_get_one_call, approvals_are_listed,
            lists_of_large_arguments_end_early, notices_of_grants_take_turns,
            pending_approvals_of_a_grant_are_bounded,
            standing_exceptions_are_setup,
            reopening_keeps_everything, random_calls_match_the_model,
        }
    };
    (@ $fixture:expr; $($case:ident,)*) => {
        $(#[test]
        fn $case() {
            $crate::suite::$case(&$fixture);
        })*
    };
}

/// Waits for a future; no runtime is needed.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

/// All rows.
pub fn all_rows(store: &dyn Store) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    loop {
        let after = rows.last().map_or(0, |row| row.seq);
        let page = RowQuery { after, limit: 1_000, ..RowQuery::default() };
        let more = wait(store.rows(page)).unwrap();
        if more.is_empty() {
            return rows;
        }
        rows.extend(more);
    }
}

/// Verifies the whole chain with every checkpoint.
pub fn verify(store: &dyn Store) -> VerifyReport {
    let checkpoints = wait(store.checkpoints()).unwrap();
    let key: PublicKey = signer().public_key();
    let mut verifier = Verifier::new(&key, checkpoints);
    for row in all_rows(store) {
        if verifier.row(i64::try_from(row.seq).unwrap(), &row.hash.0, Ok(&row.draft)).is_err() {
            break;
        }
    }
    verifier.finish()
}

/// Asserts that the chain is valid and that no call is open.
#[track_caller]
pub fn assert_whole(store: &dyn Store) {
    let report = verify(store);
    assert_eq!(report.first_bad, None);
    let status = wait(store.status()).unwrap();
    assert_eq!(status.head, report.head);
    assert_eq!(status.open, 0);
}
