//! Cases about held calls.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate_audit::{Draft, Effect, Outcome, RowKind};
use toolgate_policy::{ApprovalState, Question};

use super::{StoreFixture, TestAgent, all_rows, assert_whole, at, calls::end, wait};
use crate::{
    AdmitOutcome, Admitted, Answer, ApprovalQuery, Change, ChangeError, LISTED_BYTES,
    MAX_PENDING_BYTES, PendingApprovals, StandingException, Store, StoredApproval,
};

fn held(agent: &TestAgent, tool: &str, now: i64) -> StoredApproval {
    match agent.ask(tool, "{}", at(now)).unwrap() {
        AdmitOutcome::Held(_, Some(approval)) => *approval,
        other => panic!("{other:?}"),
    }
}

fn sent(agent: &TestAgent, tool: &str, now: i64) -> Admitted {
    match agent.ask(tool, "{}", at(now)).unwrap() {
        AdmitOutcome::Admitted(admitted) => admitted,
        other => panic!("{other:?}"),
    }
}

fn answer(
    store: &dyn Store,
    id: &Arc<str>,
    person: &str,
    approves: bool,
    now: i64,
) -> Result<(), ChangeError> {
    let answer = Answer {
        person: person.into(),
        approves,
        at: at(now),
        reason: (!approves).then(|| "not now".into()),
        via: "api".into(),
    };
    let change = Change::Answer { approval: Arc::clone(id), answer: Box::new(answer) };
    let row = Draft { person: Some(person.into()), ..Draft::new(RowKind::Approval, at(now)) };
    wait(store.change(change, row)).map(drop)
}

fn state(store: &dyn Store, id: &str) -> (ApprovalState, bool) {
    let approval = wait(store.approval(id)).unwrap().unwrap();
    (approval.state, approval.arguments.is_some())
}

fn told(store: &dyn Store, id: &str) -> Vec<String> {
    let rows = all_rows(store);
    let own = rows.iter().filter(|row| row.draft.approval_id.as_deref() == Some(id));
    own.map(|row| {
        let kind = row.draft.kind.as_str();
        row.draft.message.as_ref().map_or_else(|| kind.to_owned(), |text| format!("{kind}: {text}"))
    })
    .collect()
}

/// A held call creates one approval, which the same call finds; approved, it admits one call.
pub fn an_approval_admits_one_call(fixture: &dyn StoreFixture) {
    let mut store = fixture.open(at(0));
    let before = store.approvals_version();
    let first = held(&TestAgent::new(&store, "a"), "ask", 1);
    assert_eq!((first.state, first.expires), (ApprovalState::Pending, at(1 + 1800)));
    if fixture.is_durable() {
        wait(store.close(at(2))).unwrap();
        store = fixture.open(at(2));
    }
    let agent = TestAgent::new(&store, "a");
    assert_eq!(held(&agent, "ask", 3), first, "the same call finds it");
    assert_ne!(held(&agent.with_grant("b"), "ask", 3).id, first.id, "another grant does not");
    let other = agent.ask("ask", r#"{"a":1}"#, at(3)).unwrap();
    assert!(matches!(other, AdmitOutcome::Held(_, Some(other)) if other.id != first.id));
    assert_eq!(answer(&*store, &first.id, "duty", true, 4), Ok(()));
    let again = answer(&*store, &first.id, "night", true, 4);
    assert_eq!(again, Err(ChangeError::NotPending(ApprovalState::Approved)));
    assert_eq!(state(&*store, &first.id), (ApprovalState::Approved, true));
    let admitted = sent(&agent, "ask", 5);
    assert_eq!(state(&*store, &first.id), (ApprovalState::Consumed, false));
    let second = held(&agent, "ask", 5);
    assert_ne!(second.id, first.id, "held anew");
    end(admitted, Outcome::Ok, Effect::Done, at(6));
    assert_eq!(
        told(&*store, &first.id),
        ["held", "approval: approved", "intent", "approval: consumed"]
    );
    assert!(store.approvals_version() > before);
    let last = wait(store.last_consumed(&second.call)).unwrap();
    assert_eq!(last.map(|last| last.id), Some(first.id));
    assert_whole(&*store);
}

/// A denial is the answer until the approval expires; then the call is held anew.
pub fn a_denial_lasts_until_it_expires(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "a");
    let first = held(&agent, "ask", 1);
    answer(&*store, &first.id, "duty", false, 2).unwrap();
    assert_eq!(state(&*store, &first.id), (ApprovalState::Denied, false));
    for now in [3, 1800] {
        let AdmitOutcome::AnsweredNo(denied) = agent.ask("ask", "{}", at(now)).unwrap() else {
            panic!("it was denied")
        };
        let why = denied.denial().and_then(|denial| denial.reason.clone());
        assert_eq!((denied.id, why.as_deref()), (Arc::clone(&first.id), Some("not now")));
    }
    let second = held(&agent, "ask", 1801);
    assert_ne!(second.id, first.id);
    assert_eq!(state(&*store, &first.id).0, ApprovalState::Denied, "it stays a denial");
    assert_whole(&*store);
}

/// An approval that is not answered, or not used, in time admits nothing, whether or not a tick came.
pub fn expiry_denies(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "a");
    let unanswered = held(&agent, "ask", 0);
    let unused = held(&agent, "paid", 0);
    answer(&*store, &unused.id, "duty", true, 1).unwrap();
    let late = answer(&*store, &unanswered.id, "duty", true, 1800);
    assert_eq!(late, Err(ChangeError::NotPending(ApprovalState::Expired)));
    assert_ne!(held(&agent, "paid", 1801).id, unused.id);
    for old in [&unanswered, &unused] {
        assert_eq!(state(&*store, &old.id), (ApprovalState::Expired, false));
    }
    let third = held(&agent, "ask", 1801);
    store.tick(at(3601));
    wait(store.record(Draft::new(RowKind::Drift, at(3601)))).unwrap();
    assert_eq!(state(&*store, &third.id), (ApprovalState::Expired, false));
    // A clock that is set back brings nothing back.
    assert_ne!(held(&agent, "ask", 10).id, third.id);
    assert_whole(&*store);
}

/// A clock that is set back gives an approval no more time, and one that is accepted takes none away.
pub fn approvals_meet_clock_steps(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "a");
    let first = held(&agent, "ask", 1000);
    // Set back by a day: the answer is in time, and the call finds its approval.
    answer(&*store, &first.id, "duty", true, 1000 - 86_400).unwrap();
    assert_eq!(state(&*store, &first.id).0, ApprovalState::Approved);
    assert_ne!(held(&agent, "ask", 1000 + 1800).id, first.id, "it expired as it would have");
    assert_eq!(state(&*store, &first.id), (ApprovalState::Expired, false));
    // Set forward by a year: what waits expires, and expiry denies.
    let second = held(&agent, "paid", 3000);
    answer(&*store, &second.id, "duty", true, 3001).unwrap();
    let ahead = 86_400 * 365;
    let third = held(&agent, "paid", ahead);
    assert_ne!(third.id, second.id);
    assert_eq!(state(&*store, &second.id), (ApprovalState::Expired, false));
    // A person accepts the true time: the approval keeps the time that it had left.
    answer(&*store, &third.id, "duty", true, ahead).unwrap();
    wait(store.change(Change::AcceptClock, Draft::new(RowKind::Admin, at(4000)))).unwrap();
    let kept = wait(store.approval(&third.id)).unwrap().unwrap();
    assert_eq!((kept.state, kept.expires), (ApprovalState::Approved, at(4000 + 1800)));
    end(sent(&agent, "paid", 4000 + 1799), Outcome::Ok, Effect::Done, at(5800));
    assert_whole(&*store);
}

/// Two people are two different people, and the answer of one who was revoked is void.
pub fn answers_are_of_different_valid_people(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "a");
    let approval = held(&agent, "two", 1);
    answer(&*store, &approval.id, "duty", true, 2).unwrap();
    let same = answer(&*store, &approval.id, "duty", true, 2);
    assert_eq!(same, Err(ChangeError::AlreadyAnswered("duty".into())));
    assert_eq!(held(&agent, "two", 3).approving(), 1);
    answer(&*store, &approval.id, "night", true, 4).unwrap();
    assert_eq!(state(&*store, &approval.id).0, ApprovalState::Approved);
    let mut request = agent.request("two", "{}", at(5));
    if let Some(hold) = &mut request.hold {
        hold.is_valid = Box::new(|_, answer| &*answer.person != "duty");
    }
    let voided = wait(store.admit(request)).unwrap();
    assert!(matches!(voided, AdmitOutcome::Held(_, Some(held)) if held.approving() == 1));
    assert_eq!(state(&*store, &approval.id).0, ApprovalState::Pending);
    answer(&*store, &approval.id, "noon", true, 6).unwrap();
    end(sent(&agent, "two", 7), Outcome::Ok, Effect::Done, at(7));
    assert_whole(&*store);
}

/// A spent limit refuses without asking, and leaves an approval as it is. A call that finds its
/// approval is not a repeat.
pub fn limits_and_repeats_meet_approvals(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "a");
    let (one, two) = (held(&agent, "paid", 1), agent.ask("paid", r#"{"n":2}"#, at(1)).unwrap());
    let AdmitOutcome::Held(_, Some(two)) = two else { panic!("held") };
    answer(&*store, &one.id, "duty", true, 2).unwrap();
    answer(&*store, &two.id, "duty", true, 2).unwrap();
    end(sent(&agent, "paid", 3), Outcome::Ok, Effect::Done, at(3));
    let spent = agent.ask("paid", r#"{"n":2}"#, at(4)).unwrap();
    assert!(matches!(spent, AdmitOutcome::Refused(_)));
    assert_eq!(state(&*store, &two.id).0, ApprovalState::Approved);
    let unasked = agent.ask("paid", r#"{"n":3}"#, at(5)).unwrap();
    assert!(matches!(unasked, AdmitOutcome::Refused(_)), "no person is asked");
    let later = agent.ask("paid", r#"{"n":2}"#, at(61)).unwrap();
    let AdmitOutcome::Admitted(admitted) = later else { panic!("{later:?}") };
    end(admitted, Outcome::Ok, Effect::Done, at(61));
    // Sent at 70; the same call, approved again by then, is no repeat.
    let first = held(&agent, "again", 69);
    answer(&*store, &first.id, "duty", true, 69).unwrap();
    end(sent(&agent, "again", 70), Outcome::Ok, Effect::Done, at(70));
    let repeat = agent.ask("again", "{}", at(71)).unwrap();
    assert!(matches!(repeat, AdmitOutcome::Refused(_)), "without an approval it is one");
    assert_whole(&*store);
}

/// Of many that ask for the same approved call, one is admitted.
pub fn concurrent_redeemers_get_one_call(fixture: &dyn StoreFixture) {
    const REDEEMERS: usize = 64;
    let store = fixture.open(at(0));
    for trial in 1..=100 {
        let agent = TestAgent::new(&store, &format!("a{trial}"));
        let approval = held(&agent, "ask", trial);
        answer(&*store, &approval.id, "duty", true, trial).unwrap();
        let asked: Vec<_> =
            (0..REDEEMERS).map(|_| store.admit(agent.request("ask", "{}", at(trial)))).collect();
        let mut admitted = Vec::new();
        let mut anew = Vec::new();
        for outcome in asked {
            match wait(outcome).unwrap() {
                AdmitOutcome::Admitted(one) => admitted.push(one),
                AdmitOutcome::Held(_, Some(held)) => anew.push(held.id),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((admitted.len(), anew.len()), (1, REDEEMERS - 1));
        anew.dedup();
        assert_eq!(anew.len(), 1, "the others share one new approval");
        for one in admitted {
            end(one, Outcome::Ok, Effect::Done, at(trial));
        }
    }
    assert_whole(&*store);
}

/// A list ends early if its arguments are large, and continues after its last approval.
pub fn lists_of_large_arguments_end_early(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "a");
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(LISTED_BYTES / 2));
    for now in 1..=3 {
        let (agent, now) = (agent.with_grant(&format!("g{now}")), at(now));
        let outcome = wait(store.admit(agent.request("ask", &large, now))).unwrap();
        assert!(matches!(outcome, AdmitOutcome::Held(..)), "{outcome:?}");
    }
    let query = ApprovalQuery { limit: 3, ..ApprovalQuery::default() };
    let first = wait(store.approvals(query.clone())).unwrap();
    assert_eq!((first.len(), query.may_continue(&first)), (2, true));
    let after = first.last().map(|last| (last.created, Arc::clone(&last.id)));
    let rest = wait(store.approvals(ApprovalQuery { after, ..query.clone() })).unwrap();
    assert_eq!((rest.len(), query.may_continue(&rest)), (1, false));
}

/// Pending approvals of one grant keep a limited number of bytes; one that is answered makes room.
pub fn pending_approvals_of_a_grant_are_bounded(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let (agent, other) = (TestAgent::new(&store, "a"), TestAgent::new(&store, "b"));
    let half = usize::try_from(MAX_PENDING_BYTES / 2).unwrap();
    let ask = |agent: &TestAgent, n: u32, bytes: usize| {
        let mut request = agent.request("ask", &format!(r#"{{"n":{n}}}"#), at(1));
        // The store takes them for what they are said to be.
        request.hold.as_mut().unwrap().arguments = "x".repeat(bytes).into();
        match wait(store.admit(request)).unwrap() {
            AdmitOutcome::Held(_, Some(held)) => Some(held.id),
            AdmitOutcome::Refused(_) => None,
            other => panic!("{other:?}"),
        }
    };
    let first = ask(&agent, 1, half).unwrap();
    assert!(ask(&agent, 2, half).is_some() && ask(&agent, 3, 1).is_none());
    assert_eq!(ask(&agent, 1, half), Some(Arc::clone(&first)), "it is there already");
    assert!(ask(&other, 3, 1).is_some(), "another grant has room");
    answer(&*store, &first, "duty", true, 2).unwrap();
    assert!(ask(&agent, 3, 1).is_some());
    assert_whole(&*store);
}

/// Approvals are listed in order and page by page, and so are notices that are due.
pub fn approvals_are_listed(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "a");
    let all: Vec<StoredApproval> = (1..=5)
        .map(|now| held(&agent.with_grant(if now % 2 == 0 { "even" } else { "odd" }), "two", now))
        .chain((6..=8).map(|now| held(&agent.with_grant(&format!("g{now}")), "ask", now)))
        .collect();
    let ids = |approvals: Vec<StoredApproval>| -> Vec<Arc<str>> {
        approvals.into_iter().map(|approval| approval.id).collect()
    };
    let mut known: Vec<Arc<str>> = ids(all.clone());
    known.dedup();
    let unique: std::collections::BTreeSet<_> = known.iter().cloned().collect();
    let query = ApprovalQuery { limit: 3, ..ApprovalQuery::default() };
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let page = wait(store.approvals(ApprovalQuery { after, ..query.clone() })).unwrap();
        let Some(last) = page.last() else { break };
        after = Some((last.created, Arc::clone(&last.id)));
        seen.extend(ids(page));
    }
    assert_eq!(seen.len(), unique.len());
    let of_grant = ApprovalQuery { grant: Some("odd".into()), limit: 10, ..query.clone() };
    assert_eq!(wait(store.approvals(of_grant)).unwrap().len(), 1, "the same call is one approval");
    let pending = PendingApprovals { count: unique.len() as u64, oldest: Some(at(1)) };
    assert_eq!(wait(store.pending_approvals()).unwrap(), pending);
    let denied = seen.first().cloned().unwrap();
    answer(&*store, &denied, "duty", false, 9).unwrap();
    let state = Some(ApprovalState::Denied);
    let query = ApprovalQuery { state, limit: 10, ..ApprovalQuery::default() };
    assert_eq!(ids(wait(store.approvals(query)).unwrap()), [denied]);

    let due = |now| ids(deliveries(&*store, now));
    assert_eq!(due(100).len(), unique.len() - 1, "those that are pending");
    let (later, done) = (seen.get(1).cloned().unwrap(), seen.get(2).cloned().unwrap());
    store.note_delivery(Arc::clone(&later), Some((1, at(200))));
    store.note_delivery(done, None);
    wait(store.record(Draft::new(RowKind::Drift, at(100)))).unwrap();
    assert_eq!(due(100).len(), unique.len() - 3);
    assert!(due(200).contains(&later));
    assert_whole(&*store);
}

/// One grant with many pending approvals does not delay the notices of another.
pub fn notices_of_grants_take_turns(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let (many, one) = (TestAgent::new(&store, "many"), TestAgent::new(&store, "one"));
    for now in 1..=5 {
        let outcome = many.ask("ask", &format!(r#"{{"n":{now}}}"#), at(now)).unwrap();
        assert!(matches!(outcome, AdmitOutcome::Held(..)), "{outcome:?}");
    }
    let last = held(&one, "ask", 6);
    let due = |limit| -> Vec<(Arc<str>, Timestamp)> {
        let due = wait(store.due_deliveries(at(7), limit)).unwrap();
        due.into_iter().map(|it| (it.approval.call.grant, it.approval.created)).collect()
    };
    let first: [(Arc<str>, Timestamp); 3] =
        [("many".into(), at(1)), ("one".into(), last.created), ("many".into(), at(2))];
    assert_eq!(due(3), first);
    assert_eq!(due(100).len(), 6);
}

fn deliveries(store: &dyn Store, now: i64) -> Vec<StoredApproval> {
    let due = wait(store.due_deliveries(at(now), 100)).unwrap();
    due.into_iter().map(|due| due.approval).collect()
}

/// Standing exceptions are part of the setup.
pub fn standing_exceptions_are_setup(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let exception = StandingException {
        id: "std_1".into(),
        approval: "apr_1".into(),
        grant: "a".into(),
        server: "work".into(),
        session_id: Some("u1".into()),
        tool: "ask".into(),
        fingerprint: None,
        policy_hash: None,
        kept: "{}".into(),
        question: Question { approvers: vec!["ops".to_owned()], people: 2, ..Question::default() },
        person: "duty".into(),
        reason: None,
        created: at(1),
        expires: at(100),
    };
    let before = store.generation();
    let row = || Draft::new(RowKind::Approval, at(1));
    wait(store.change(Change::Except(Box::new(exception.clone())), row())).unwrap();
    assert_eq!(wait(store.snapshot()).unwrap().exceptions, std::slice::from_ref(&exception));
    wait(store.change(Change::EndException("std_1".into()), row())).unwrap();
    assert_eq!(wait(store.snapshot()).unwrap().exceptions, []);
    let gone = wait(store.change(Change::EndException("std_1".into()), row()));
    assert_eq!(gone, Err(ChangeError::Unknown("std_1".into())));
    assert_eq!(store.generation(), before + 2);

    // One whose time is up ends with a row.
    wait(store.change(Change::Except(Box::new(exception.clone())), row())).unwrap();
    store.tick(at(99));
    wait(store.record(Draft::new(RowKind::Drift, at(99)))).unwrap();
    assert_eq!(wait(store.snapshot()).unwrap().exceptions, [exception]);
    store.tick(at(100));
    wait(store.record(Draft::new(RowKind::Drift, at(100)))).unwrap();
    assert_eq!(wait(store.snapshot()).unwrap().exceptions, []);
    let rows = all_rows(&*store);
    let last = rows.iter().rfind(|row| row.draft.kind == RowKind::Approval).unwrap();
    assert_eq!(last.draft.approval_id.as_deref(), Some("std_1"));
    assert_eq!(last.draft.message.as_deref(), Some("a standing exception has expired"));
    assert_eq!(store.generation(), before + 4);
    assert_whole(&*store);
}
