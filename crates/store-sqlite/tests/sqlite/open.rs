//! Open calls are found by later processes, and only those of exited processes are ended.

use std::sync::Arc;

use toolgate_audit::{CallId, Draft, Outcome, RowKind};
use toolgate_store::{
    Admitted, Store,
    suite::{TestAgent, all_rows, assert_whole, at, wait},
};
use toolgate_store_sqlite::AuditReader;

use crate::fixture::{SqliteFixture, opened};

fn start(folder: &SqliteFixture, second: i64) -> Arc<dyn Store> {
    Arc::new(opened(folder.path(), at(second)).store)
}

/// All earlier jobs are written when this returns.
fn flush(store: &dyn Store) {
    wait(store.record(Draft::new(RowKind::Drift, at(1)))).unwrap();
}

fn outcomes(store: &dyn Store, call: CallId) -> Vec<Outcome> {
    let rows = wait(store.call_rows(call)).unwrap();
    rows.iter().filter_map(|row| row.draft.outcome).collect()
}

/// Two processes admit in turn, with ticks in between. One exits without closing: the next start
/// ends its open calls, and not those of the other process.
#[test]
fn each_process_leaves_its_own_calls() {
    for ticks in 0..4 {
        for between in 0..3 {
            let folder = SqliteFixture::default();
            let (gone, lives) = (start(&folder, 0), start(&folder, 0));
            let (of_gone, of_lives) = (TestAgent::new(&gone, "a"), TestAgent::new(&lives, "b"));
            let mut open: [Vec<Admitted>; 2] = Default::default();
            for round in 0..4 {
                for (place, agent) in [&of_gone, &of_lives].into_iter().enumerate() {
                    open[place].push(agent.admit("many", "{}", at(1)).unwrap());
                    for _ in 0..between {
                        assert!(agent.call_through("many", "{}", at(1)));
                    }
                }
                for _ in 0..if round == 2 { ticks } else { 0 } {
                    for store in [&gone, &lives] {
                        store.tick(at(2));
                        flush(&**store);
                    }
                }
            }
            // One of each has ended, whether it is in `open` or not.
            for calls in &mut open {
                drop(calls.remove(1));
            }
            flush(&*gone);
            flush(&*lives);
            assert_eq!(wait(lives.status()).unwrap().open, 6, "{ticks} ticks, {between} between");
            wait(gone.close(at(3))).unwrap();
            let next = start(&folder, 4);
            let unknown = [Outcome::Unknown];
            let [left, going_on] = &open;
            for call in left {
                assert_eq!(outcomes(&*next, call.call_id()), unknown, "{ticks} {between}");
            }
            for call in going_on {
                assert_eq!(outcomes(&*next, call.call_id()), [], "{ticks} {between}");
            }
            assert_eq!(wait(next.status()).unwrap().open, 3);
            drop(open);
            flush(&*lives);
            assert_whole(&*next);
            let outcomes = all_rows(&*next);
            let outcomes = outcomes.iter().filter(|row| row.draft.kind == RowKind::Outcome).count();
            assert_eq!(outcomes, 8 + 8 * between, "each call ends once");
        }
    }
}

/// The tables of open calls do not grow with calls that have ended.
#[test]
fn nothing_is_left_of_calls_that_have_ended() {
    let folder = SqliteFixture::default();
    let stores = [start(&folder, 0), start(&folder, 0)];
    for second in 1..200 {
        for store in &stores {
            assert!(TestAgent::new(store, "a").call_through("many", "{}", at(second)));
            store.tick(at(second));
            flush(&**store);
        }
    }
    let count = |table: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        folder.sql().query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    assert_eq!((count("open"), count("owner")), (0, 2));
    // Spans are pruned once a minute.
    assert!(count("span") <= 2 * 61, "{}", count("span"));
}

/// All rows of a call are found, including the most recent ones.
#[test]
fn every_call_has_all_its_rows() {
    let folder = SqliteFixture::default();
    let store = start(&folder, 0);
    let agent = TestAgent::new(&store, "a");
    for call in 0..700 {
        let admitted = agent.admit("many", "{}", at(call)).unwrap();
        let id = admitted.call_id();
        assert_eq!(wait(store.call_rows(id)).unwrap().len(), 1, "{call}");
        drop(admitted);
    }
    flush(&*store);
    let audit = AuditReader::open(folder.path()).unwrap().unwrap();
    for row in all_rows(&*store) {
        let Some(id) = row.draft.call_id else { continue };
        assert_eq!(wait(store.call_rows(id)).unwrap().len(), 2);
        assert_eq!(audit.calls_between(id, id).unwrap(), [id]);
    }
}
