//! Several processes admit calls in one folder.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    sync::Arc,
    thread,
};

use toolgate_store::{
    Store,
    suite::{TestAgent, assert_whole, at, wait},
};

use crate::fixture::{SqliteFixture, given, opened, spawn};

const PROCESSES: usize = 4;
const THREADS: usize = 4;
const ASKED: usize = 12;

/// Not a test itself: one of the processes.
#[test]
fn child_of_several() {
    let Some(folder) = given() else { return };
    let mut lines = std::io::stdin().lines();
    println!("ready");
    while let Some(Ok(line)) = lines.next() {
        let (tool, second) = line.split_once(' ').unwrap();
        println!("\nadmitted {}", hammer(&folder, tool, second.parse().unwrap()));
    }
}

/// Opens the store, calls from several threads, closes it.
fn hammer(folder: &Path, tool: &str, second: i64) -> usize {
    let store: Arc<dyn Store> = Arc::new(opened(folder, at(second)).store);
    let agent = TestAgent::new(&store, "shared");
    let admitted = thread::scope(|scope| {
        let ask = |_| {
            let agent = agent.clone();
            scope.spawn(move || {
                (0..ASKED).filter(|_| agent.call_through(tool, "{}", at(second))).count()
            })
        };
        let threads: Vec<_> = (0..THREADS).map(ask).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    wait(store.close(at(second))).unwrap();
    admitted
}

/// In each round they reopen the folder in the same minute: first a limit of thirty, then a sliding
/// one, then a call that may be made once.
#[test]
fn four_processes_admit_exactly_the_limit() {
    let folder = SqliteFixture::default();
    let mut children: Vec<_> = (0..PROCESSES)
        .map(|_| {
            let mut child = spawn("processes::child_of_several", folder.path());
            let output = BufReader::new(child.stdout.take().unwrap()).lines();
            (child, output)
        })
        .collect();
    let mut total = 0;
    for trial in 0..8 {
        let second = 600 * (trial + 1);
        for (tool, limit) in [("close", 30), ("slide", 30), ("once", 1), ("close", 0)] {
            for (child, _) in &mut children {
                writeln!(child.stdin.as_mut().unwrap(), "{tool} {second}").unwrap();
            }
            let admitted: usize = children
                .iter_mut()
                .map(|(_, output)| {
                    let mut counts = output.filter_map(|line| {
                        line.unwrap().strip_prefix("admitted ")?.parse::<usize>().ok()
                    });
                    counts.next().unwrap()
                })
                .sum();
            assert_eq!(admitted, limit, "trial {trial}, {tool}");
            total += admitted;
        }
    }
    for (mut child, output) in children {
        drop(child.stdin.take());
        output.for_each(drop);
        assert!(child.wait().unwrap().success());
    }
    let store: Arc<dyn Store> = Arc::new(opened(folder.path(), at(9_000)).store);
    assert_whole(&*store);
    let intents: i64 = folder
        .sql()
        .query_row("SELECT count(*) FROM audit WHERE kind = 'intent'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(usize::try_from(intents).unwrap(), total);
}

/// A running process retains its open calls while others start and exit.
#[test]
fn calls_of_a_living_process_are_left_alone() {
    let folder = SqliteFixture::default();
    let first: Arc<dyn Store> = Arc::new(opened(folder.path(), at(0)).store);
    let agent = TestAgent::new(&first, "a");
    let open = agent.admit("run", "{}", at(1)).unwrap();
    let call = open.call_id();
    for _ in 0..3 {
        let second: Arc<dyn Store> = Arc::new(opened(folder.path(), at(2)).store);
        assert_eq!(wait(second.call_rows(call)).unwrap().len(), 1);
        assert_eq!(wait(second.status()).unwrap().open, 1);
        // Its calls are in flight for the other process too.
        let other = TestAgent::new(&second, "a");
        let running: Vec<_> = (0..3).filter_map(|_| other.admit("run", "{}", at(2)).ok()).collect();
        assert_eq!(running.len(), 2);
        drop(running);
        wait(second.close(at(2))).unwrap();
    }
    // A process that exits without closing leaves its calls to the next start.
    wait(first.close(at(3))).unwrap();
    drop(open);
    let third: Arc<dyn Store> = Arc::new(opened(folder.path(), at(4)).store);
    assert_eq!(wait(third.call_rows(call)).unwrap().len(), 2);
    assert_whole(&*third);
}

/// A change by one process takes effect in another at once.
#[test]
fn changes_reach_other_processes() {
    use toolgate_audit::{Draft, RowKind};
    use toolgate_store::{AdmitOutcome, AdmitRequest, Change, Freeze, FreezeTarget};
    let folder = SqliteFixture::default();
    let first: Arc<dyn Store> = Arc::new(opened(folder.path(), at(0)).store);
    let second: Arc<dyn Store> = Arc::new(opened(folder.path(), at(0)).store);
    let known = second.generation();
    let (what, person, reason) = (FreezeTarget::All, None, None);
    let freeze = Freeze { id: "f".into(), what, created: at(1), person, reason };
    wait(first.change(Change::Freeze(freeze), Draft::new(RowKind::Admin, at(1)))).unwrap();
    let agent = TestAgent::new(&second, "a");
    let request = AdmitRequest { generation: Some(known), ..agent.request("close", "{}", at(1)) };
    assert!(matches!(wait(second.admit(request)), Ok(AdmitOutcome::Stale)));
    assert_eq!(second.generation(), first.generation());
    assert_eq!(wait(second.snapshot()).unwrap().freezes.len(), 1);
}
