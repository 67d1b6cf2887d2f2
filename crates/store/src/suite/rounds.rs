//! Cases about calls that take several requests, or continue as a task.

use toolgate_audit::{CallId, Effect, Outcome, RowKind};

use super::{StoreFixture, TestAgent, all_rows, assert_whole, at, calls::end, wait};
use crate::{AdmitOutcome, AdmitRequest, Completion, RoundKind, Store};

fn next(store: &dyn Store, agent: &TestAgent, tool: &str, call: CallId, now: i64) -> AdmitOutcome {
    let mut request = AdmitRequest { round: RoundKind::Next, ..agent.request(tool, "{}", at(now)) };
    request.draft.call_id = Some(call);
    wait(store.admit(request)).unwrap()
}

/// The next round is decided again but not counted again; it can be resumed once; nothing is
/// refunded.
pub fn a_call_continues_round_by_round(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "a");
    let running: Vec<_> = (0..3).map(|_| agent.admit("run", "{}", at(1)).unwrap()).collect();
    let mut running = running.into_iter();
    let first = running.next().unwrap();
    let (call, seq) = (first.call_id(), first.seq());
    assert!(matches!(next(&*store, &agent, "run", call, 1), AdmitOutcome::NotWaiting), "it runs");
    end(first, Outcome::InputRequired, Effect::Unknown, at(2));
    assert!(agent.admit("run", "{}", at(2)).is_err(), "a call that waits is in flight");
    assert!(matches!(next(&*store, &agent, "never", call, 3), AdmitOutcome::Refused(_)));
    let AdmitOutcome::Admitted(second) = next(&*store, &agent, "run", call, 3) else {
        panic!("the limit is spent, but this call has its share")
    };
    assert_eq!((second.call_id(), second.seq()), (call, seq));
    assert!(matches!(next(&*store, &agent, "run", call, 3), AdmitOutcome::NotWaiting), "once");
    end(second, Outcome::Unavailable, Effect::NotStarted, at(4));
    assert!(
        matches!(next(&*store, &agent, "run", call, 5), AdmitOutcome::NotWaiting),
        "it is over"
    );
    running.for_each(|admitted| end(admitted, Outcome::Ok, Effect::Done, at(5)));
    let mut kinds = wait(store.call_rows(call)).unwrap();
    kinds.retain(|row| row.draft.kind != RowKind::Denied);
    let outcomes: Vec<_> = kinds.iter().map(|row| row.draft.outcome).collect();
    assert_eq!(outcomes, [None, Some(Outcome::InputRequired), Some(Outcome::Unavailable)]);
    // A round was sent, so the count stays, although the last one was not sent.
    let one = agent.admit("both", "{}", at(6)).unwrap();
    let call = one.call_id();
    end(one, Outcome::InputRequired, Effect::Unknown, at(6));
    let AdmitOutcome::Admitted(two) = next(&*store, &agent, "both", call, 7) else {
        panic!("refused")
    };
    end(two, Outcome::Unavailable, Effect::NotStarted, at(8));
    assert_eq!((0..9).filter(|_| agent.call_through("both", "{}", at(9))).count(), 4);
    assert_whole(&*store);
}

/// The call ends after ten minutes and no sooner; until then another process may continue it.
pub fn missing_rounds_end_the_call(fixture: &dyn StoreFixture) {
    let mut store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "a");
    let (early, late) = (agent.admit("run", "{}", at(1)), agent.admit("run", "{}", at(1)));
    let (early, late) = (early.unwrap(), late.unwrap());
    let calls = (early.call_id(), late.call_id());
    end(early, Outcome::InputRequired, Effect::Unknown, at(10));
    end(late, Outcome::InputRequired, Effect::Unknown, at(20));
    if fixture.is_durable() {
        wait(store.close(at(30))).unwrap();
        store = fixture.open(at(30));
    }
    let agent = TestAgent::new(&store, "a");
    store.tick(at(609));
    store.tick(at(615));
    assert!(matches!(next(&*store, &agent, "run", calls.0, 616), AdmitOutcome::NotWaiting));
    let AdmitOutcome::Admitted(late) = next(&*store, &agent, "run", calls.1, 616) else {
        panic!("it waits")
    };
    end(late, Outcome::Ok, Effect::Done, at(617));
    let rows = all_rows(&*store);
    let cancelled: Vec<_> =
        rows.iter().filter(|row| row.draft.outcome == Some(Outcome::Cancelled)).collect();
    let told = cancelled.first().map(|row| (row.draft.call_id, row.draft.tool.as_deref()));
    assert_eq!((cancelled.len(), told), (1, Some((Some(calls.0), Some("run")))));
    assert_whole(&*store);
}

/// A call that continues as a task is open and in flight in the next process too, until the task has
/// ended or its time is up.
pub fn tasks_outlive_their_process(fixture: &dyn StoreFixture) {
    if !fixture.is_durable() {
        return;
    }
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "a");
    let tasks = [("ends", 10_000), ("expires", 500), ("stays", 10_000)];
    let [ends, expires, stays] = tasks.map(|(task, until)| {
        let admitted = agent.admit("run", "{}", at(1)).unwrap();
        let call = admitted.call_id();
        let (permit, ticket) = admitted.split();
        drop(permit);
        ticket.continue_as_task(task, at(until));
        ticket.leave();
        call
    });
    wait(store.close(at(2))).unwrap();
    let store = fixture.open(at(3));
    let agent = TestAgent::new(&store, "a");
    let open = || wait(store.status()).unwrap().open;
    let last_outcome =
        |call| wait(store.call_rows(call)).unwrap().last().and_then(|row| row.draft.outcome);
    assert_eq!(open(), 3);
    assert!(agent.admit("run", "{}", at(3)).is_err(), "all of them are in flight");
    store.end_task("unknown", Completion::new(Outcome::Ok, Effect::Done, at(4)));
    store.end_task("ends", Completion::new(Outcome::ToolError, Effect::Done, at(4)));
    let one = agent.admit("run", "{}", at(5)).unwrap();
    assert_eq!((open(), last_outcome(ends)), (3, Some(Outcome::ToolError)));
    end(one, Outcome::Ok, Effect::Done, at(6));
    store.tick(at(501));
    let rest: Vec<_> = (0..3).map_while(|_| agent.admit("run", "{}", at(502)).ok()).collect();
    assert_eq!((rest.len(), last_outcome(expires)), (2, Some(Outcome::Unknown)));
    assert_eq!(last_outcome(stays), None, "it is still open");
    for admitted in rest {
        end(admitted, Outcome::Ok, Effect::Done, at(503));
    }
    // One that ends in its own process leaves nothing.
    let own = agent.admit("run", "{}", at(504)).unwrap();
    let (permit, ticket) = own.split();
    drop(permit);
    ticket.continue_as_task("stays", at(10_000));
    store.end_task("stays", Completion::new(Outcome::Ok, Effect::Done, at(505)));
    wait(ticket.finish_written(Completion::new(Outcome::Cancelled, Effect::Unknown, at(506))))
        .unwrap();
    assert_eq!(last_outcome(stays), Some(Outcome::Ok));
    assert_whole(&*store);
}
