//! Cases about rows: which are written and which are not.

use std::thread;

use toolgate_audit::{Decision, Draft, Effect, Hash, Outcome, Row, RowKind};

use super::{StoreFixture, TestAgent, all_rows, assert_whole, at, calls::end, wait};
use crate::{AdmitOutcome, AdmitRequest, Completion, RowQuery, StoreErrorKind};

fn kinds(rows: &[Row]) -> Vec<RowKind> {
    rows.iter().map(|row| row.draft.kind).collect()
}

/// A dropped ticket, with or without its permit, records `unknown` and refunds nothing.
pub fn a_dropped_ticket_is_unknown(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "a");
    drop(agent.admit("both", "{}", at(1)).unwrap());
    let (permit, ticket) = agent.admit("both", "{}", at(1)).unwrap().split();
    let call = permit.call_id();
    drop(permit);
    drop(ticket);
    let room = (0..9).filter(|_| agent.call_through("both", "{}", at(2))).count();
    assert_eq!(room, 3);
    let told = wait(store.call_rows(call)).unwrap();
    assert_eq!(kinds(&told), [RowKind::Intent, RowKind::Outcome]);
    let last = told.last().map(|row| (row.draft.outcome, row.draft.effect));
    assert_eq!(last, Some((Some(Outcome::Unknown), Some(Effect::Unknown))));
    // A caller that stops waiting for the reply leaves no call open.
    drop(store.admit(agent.request("close", "{}", at(3))));
    wait(store.record(Draft::new(RowKind::Drift, at(3)))).unwrap();
    wait(store.record(Draft::new(RowKind::Drift, at(3)))).unwrap();
    assert_whole(&*store);
}

/// Both rows of a call to a session name the session.
pub fn an_outcome_names_the_session(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "a");
    let mut request = agent.request("close", "{}", at(1));
    request.draft.session_id = Some("u1".into());
    let AdmitOutcome::Admitted(admitted) = wait(store.admit(request)).unwrap() else {
        panic!("not admitted")
    };
    let call = admitted.call_id();
    let (_permit, ticket) = admitted.split();
    let completion = Completion::new(Outcome::Ok, Effect::Done, at(2));
    wait(ticket.finish_written(completion)).unwrap();
    let told = wait(store.call_rows(call)).unwrap();
    let sessions: Vec<_> = told.iter().map(|row| row.draft.session_id.as_deref()).collect();
    assert_eq!(sessions, [Some("u1"), Some("u1")]);
}

/// The rows of one call, in order, with caller, tool and rule.
pub fn every_call_has_its_rows(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "a");
    let admitted = agent.admit("close", "{}", at(1)).unwrap();
    let (call, seq) = (admitted.call_id(), admitted.seq());
    let (_permit, ticket) = admitted.split();
    let mut completion = Completion::new(Outcome::ToolError, Effect::Done, at(2));
    (completion.upstream_ms, completion.total_ms) = (Some(7), Some(9));
    completion.message = Some("said no".into());
    wait(ticket.finish_written(completion)).unwrap();
    let other = agent.admit("close", "{}", at(3)).unwrap();
    let told = wait(store.call_rows(call)).unwrap();
    assert_eq!(told.first().map(|row| row.seq), Some(seq));
    let told: Vec<_> = told
        .iter()
        .map(|row| {
            let draft = &row.draft;
            (draft.kind, draft.grant.as_deref(), draft.decision, draft.outcome, draft.total_ms)
        })
        .collect();
    let expected = [
        (RowKind::Intent, Some("a"), Some(Decision::Allow), None, None),
        (RowKind::Outcome, Some("a"), None, Some(Outcome::ToolError), Some(9)),
    ];
    assert_eq!(told, expected);
    end(other, Outcome::Ok, Effect::Done, at(4));
    // Pages and filters.
    assert!(agent.admit("never", "{}", at(5)).is_err());
    agent.with_grant("b").call_through("close", "{}", at(5));
    let count = |page: RowQuery| wait(store.rows(RowQuery { limit: 100, ..page })).unwrap().len();
    assert_eq!(count(RowQuery::default()), 7);
    assert_eq!(count(RowQuery { after: 3, ..RowQuery::default() }), 4);
    assert_eq!(count(RowQuery { grant: Some("b".into()), ..RowQuery::default() }), 2);
    assert_eq!(count(RowQuery { tool: Some("never".into()), ..RowQuery::default() }), 1);
    assert_eq!(count(RowQuery { decision: Some(Decision::Deny), ..RowQuery::default() }), 1);
    assert_eq!(wait(store.rows(RowQuery { limit: 2, ..RowQuery::default() })).unwrap().len(), 2);
    assert_whole(&*store);
}

/// Ten denials of a kind per minute are rows; further ones become one row with a count.
pub fn denials_are_coalesced(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "a");
    for _ in 0..200 {
        assert!(agent.admit("never", "{}", at(30)).is_err());
    }
    let mut denial = Draft::new(RowKind::Denied, at(31));
    (denial.grant, denial.tool) = (Some("a".into()), Some("close".into()));
    denial.error_code = Some("frozen".into());
    for _ in 0..12 {
        wait(store.deny(denial.clone())).unwrap();
    }
    assert_eq!(all_rows(&*store).len(), 20);
    store.tick(at(59));
    store.tick(at(60));
    wait(store.record(Draft::new(RowKind::Drift, at(60)))).unwrap();
    let rows = all_rows(&*store);
    let counts: Vec<u64> = rows.iter().filter_map(|row| row.draft.count).collect();
    assert_eq!(counts, [190, 2]);
    // Denials of an unfinished minute are written at the close.
    for _ in 0..15 {
        assert!(agent.admit("never", "{}", at(61)).is_err());
    }
    assert_whole(&*store);
    wait(store.close(at(62))).unwrap();
    if fixture.is_durable() {
        let store = fixture.open(at(63));
        assert_eq!(all_rows(&*store).last().and_then(|row| row.draft.count), Some(5));
        assert_whole(&*store);
    }
}

/// A grant that invents names gets a thousand rows per minute, and one with the count of the rest.
pub fn denials_per_grant_are_capped(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let denial = |grant: &str, tool: usize| {
        let mut denial = Draft::new(RowKind::Denied, at(31));
        (denial.grant, denial.tool) = (Some(grant.into()), Some(format!("made-up-{tool}").into()));
        denial.rule = Some("(default deny)".into());
        denial
    };
    let told: Vec<_> = (0..1_300).map(|tool| store.deny(denial("a", tool))).collect();
    for told in told {
        wait(told).unwrap();
    }
    wait(store.deny(denial("b", 0))).unwrap();
    assert_eq!(all_rows(&*store).len(), 1_001);
    store.tick(at(60));
    wait(store.record(Draft::new(RowKind::Drift, at(60)))).unwrap();
    let rows = all_rows(&*store);
    let counted: Vec<_> = rows.iter().filter(|row| row.draft.count.is_some()).collect();
    assert_eq!(counted.len(), 1);
    let draft = &counted.first().unwrap().draft;
    assert_eq!((draft.grant.as_deref(), draft.tool.as_deref()), (Some("a"), None));
    assert_eq!(draft.count, Some(300));
    assert_whole(&*store);
}

/// A row stores at most 512 bytes of any text of an agent, and the digest of the whole text.
pub fn long_texts_are_truncated(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "a");
    let long = "ы".repeat(100_000);
    let completion = format!("…sha256:{}", Hash::of(long.as_bytes()));
    let mut request = agent.request("close", "{}", at(1));
    request.draft.client = Some(long.as_str().into());
    let Ok(AdmitOutcome::Admitted(admitted)) = wait(store.admit(request)) else {
        panic!("admitted")
    };
    let mut done = Completion::new(Outcome::ToolError, Effect::Done, at(2));
    done.message = Some(long.as_str().into());
    wait(admitted.split().1.finish_written(done)).unwrap();
    let mut denial = Draft::new(RowKind::Denied, at(3));
    (denial.tool, denial.rule) = (Some(long.as_str().into()), Some(long.as_str().into()));
    denial.arguments = Some(format!("\"{long}\"").into());
    wait(store.deny(denial)).unwrap();
    let mut other = Draft::new(RowKind::Drift, at(4));
    other.message = Some(long.as_str().into());
    wait(store.record(other)).unwrap();
    let rows = all_rows(&*store);
    assert_eq!(rows.len(), 4);
    for row in &rows {
        assert!(row.to_json().len() < 3_000, "{}", row.to_json());
        let draft = &row.draft;
        let long = [&draft.client, &draft.message, &draft.tool, &draft.rule].into_iter().flatten();
        for text in long.filter(|text| text.len() > 20) {
            assert!(text.len() <= 600 && text.ends_with(&completion), "{text}");
        }
    }
    assert_whole(&*store);
}

/// A checkpoint covers a row at the latest 60 s after the one before it, even if no further row is
/// written; without new rows there is none.
pub fn checkpoints_are_signed_by_age(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let record = |second| wait(store.record(Draft::new(RowKind::Admin, at(second)))).unwrap();
    let covered = || -> Vec<u64> {
        wait(store.checkpoints()).unwrap().iter().map(|checkpoint| checkpoint.seq).collect()
    };
    let first = record(1);
    assert_eq!(covered(), [first], "the first row is covered at once");
    record(30);
    store.tick(at(60));
    // Written after the tick, within the same 60 s.
    let last = record(60);
    assert_eq!(covered(), [first]);
    store.tick(at(61));
    while covered().len() < 2 {
        thread::yield_now();
    }
    assert_eq!(covered(), [first, last]);
    store.tick(at(1_000));
    let next = record(1_000);
    assert_eq!(covered(), [first, last, next], "a tick without new rows signs nothing");
    assert_whole(&*store);
}

/// Without its row nothing happens: no admission, no counter, no change. Everything recovers when
/// writing works again, and outcomes wait until then.
pub fn nothing_is_admitted_unless_written(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "a");
    let open = agent.admit("run", "{}", at(1)).unwrap();
    let rows = all_rows(&*store).len();
    fixture.set_broken(true);
    for _ in 0..40 {
        let refused = agent.ask("close", "{}", at(2)).unwrap_err();
        assert_ne!(refused.0.kind, StoreErrorKind::Closed, "{refused}");
    }
    assert!(agent.ask("never", "{}", at(2)).is_err());
    assert!(wait(store.record(Draft::new(RowKind::Admin, at(2)))).is_err());
    let (_permit, ticket) = open.split();
    let settled = ticket.finish_written(Completion::new(Outcome::Ok, Effect::Done, at(3)));
    assert!(agent.ask("close", "{}", at(2)).is_err());
    assert_eq!(all_rows(&*store).len(), rows);
    fixture.set_broken(false);
    // A store without threads retries on the next tick.
    store.tick(at(3));
    wait(settled).unwrap();
    let room = (0..40).filter(|_| agent.call_through("close", "{}", at(4))).count();
    assert_eq!(room, 30);
    assert_whole(&*store);
}

/// A call that would be held, and cannot be, takes nothing.
pub fn a_held_call_leaves_no_trace(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "a");
    let request = AdmitRequest { hold: None, ..agent.request("ask", "{}", at(1)) };
    let held = wait(store.admit(request)).unwrap();
    assert!(matches!(held, AdmitOutcome::Held(verdict, None) if verdict.hold.is_some()));
    assert!(all_rows(&*store).is_empty());
    assert_whole(&*store);
}

/// Shadow rules are counted and reported, and never refuse.
pub fn shadow_never_refuses(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "a");
    for _ in 0..4 {
        assert!(agent.call_through("soft", "{}", at(1)));
    }
    let rows = all_rows(&*store);
    let decisions: Vec<_> = rows.iter().filter_map(|row| row.draft.decision).collect();
    let (allow, shadow) = (Decision::Allow, Decision::ShadowDeny);
    assert_eq!(decisions, [allow, allow, shadow, shadow]);
    let last = rows.iter().rev().find(|row| row.draft.kind == RowKind::Intent).unwrap();
    assert_eq!(last.draft.rule.as_deref(), Some("/tools/soft/limits/soft_rate"));
    assert_whole(&*store);
}

/// A decision that panics refuses its own call; concurrent calls are not affected.
pub fn a_panicking_decision_fails_only_its_call(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "a");
    let good = || store.admit(agent.request("close", "{}", at(1)));
    let bad = AdmitRequest {
        decide: Box::new(|_, _, _| panic!("on purpose")),
        ..agent.request("close", "{}", at(1))
    };
    let (before, bad, after) = (good(), store.admit(bad), good());
    assert_eq!(wait(bad).unwrap_err().0.kind, StoreErrorKind::Internal);
    for answer in [wait(before), wait(after)] {
        assert!(matches!(answer, Ok(AdmitOutcome::Admitted(_))));
    }
    wait(store.record(Draft::new(RowKind::Drift, at(2)))).unwrap();
    assert_whole(&*store);
}

/// The first grant that receives an id owns it until it is ended or expires.
pub fn ownership_follows_results(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let (a, b) = (TestAgent::new(&store, "a"), TestAgent::new(&store, "b"));
    let result = r#"{"content":[],"structuredContent":{"id":"job-7"}}"#;
    let argument = r#"{"id":"job-7"}"#;
    assert!(!a.call_through("end", argument, at(1)));
    assert_eq!(finish(&a, "open", "{}", result), 0);
    assert_eq!(finish(&b, "open", "{}", result), 1, "it belongs to `a`");
    let message = all_rows(&*store).last().and_then(|row| row.draft.message.clone());
    assert!(message.is_some_and(|text| text.contains("conflict") && !text.contains("job-7")));
    assert!(!b.call_through("end", argument, at(3)));
    assert_eq!(finish(&a, "end", argument, result), 0);
    assert!(!a.call_through("end", argument, at(5)), "it is over");
    assert_eq!(finish(&b, "open", "{}", result), 0, "and free");
    let week = 7 * 86_400;
    assert!(b.call_through("end", argument, at(week)));
    assert!(!b.call_through("end", argument, at(week + 10)), "forgotten");
    assert_whole(&*store);
}

fn finish(agent: &TestAgent, tool: &str, arguments: &str, result: &str) -> usize {
    let admitted = agent.admit(tool, arguments, at(2)).unwrap();
    let (_permit, ticket) = admitted.split();
    let mut completion = Completion::new(Outcome::Ok, Effect::Done, at(2));
    completion.ownership = agent.outcome(tool, arguments, result);
    wait(ticket.finish_written(completion)).unwrap().conflicts.len()
}
