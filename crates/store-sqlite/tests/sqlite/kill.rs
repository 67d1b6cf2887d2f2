//! Repeated kill -9: nothing that was acknowledged is lost.

use std::{
    collections::{HashMap, HashSet},
    io::{BufRead as _, BufReader, Write as _},
    sync::Arc,
    thread,
};

use jiff::tz::TimeZone;
use toolgate_audit::{Draft, Effect, Outcome, RowKind};
use toolgate_policy::Window;
use toolgate_store::{
    Change, Completion, Store,
    suite::{TestAgent, all_rows, assert_whole, at, wait},
};

use crate::fixture::{SqliteFixture, given, opened, spawn};

/// Not a test itself: the process that is killed. It prints each admitted call.
#[test]
fn child_that_is_killed() {
    let Some(folder) = given() else { return };
    let store: Arc<dyn Store> = Arc::new(opened(&folder, at(10)).store);
    let agent = TestAgent::new(&store, "victim");
    thread::scope(|scope| {
        for _ in 0..3 {
            let agent = agent.clone();
            scope.spawn(move || {
                loop {
                    let admitted = agent.admit("many", "{}", at(10)).unwrap();
                    let call = admitted.call_id();
                    // One write, so that a kill cannot leave half a line in front of another.
                    std::io::stdout()
                        .lock()
                        .write_all(format!("\ncall {call}\n").as_bytes())
                        .unwrap();
                    let (_permit, ticket) = admitted.split();
                    ticket.finish(Completion::new(Outcome::Ok, Effect::Done, at(10)));
                }
            });
        }
    });
}

#[test]
fn kills_lose_nothing_acknowledged() {
    let folder = SqliteFixture::default();
    let mut acknowledged: HashSet<String> = HashSet::new();
    for round in 0..15 {
        let mut child = spawn("kill::child_that_is_killed", folder.path());
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut left = 5 + round * 23;
        for line in lines.map_while(Result::ok) {
            if let Some(call) = line.strip_prefix("call ").filter(|call| call.len() == 36) {
                acknowledged.insert(call.to_owned());
            }
            left -= 1;
            if left == 0 {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
    }
    assert!(acknowledged.len() > 500, "{}", acknowledged.len());
    let store: Arc<dyn Store> = Arc::new(opened(folder.path(), at(20)).store);
    assert_whole(&*store);
    let mut kinds: HashMap<String, Vec<RowKind>> = HashMap::new();
    for row in all_rows(&*store) {
        kinds.entry(row.draft.call_id.unwrap().to_string()).or_default().push(row.draft.kind);
    }
    for call in &acknowledged {
        assert_eq!(kinds.get(call), Some(&vec![RowKind::Intent, RowKind::Outcome]), "{call}");
    }
    assert!(kinds.values().all(|kinds| *kinds == [RowKind::Intent, RowKind::Outcome]));
    // The counter is exactly the number of intents.
    let used: String =
        folder.sql().query_row("SELECT used FROM counter", [], |row| row.get(0)).unwrap();
    assert_eq!(used, kinds.len().to_string());
    let (sent, received) = std::sync::mpsc::channel();
    let key: String =
        folder.sql().query_row("SELECT key FROM counter", [], |row| row.get(0)).unwrap();
    let look = move |usage: &dyn toolgate_policy::Usage, now| {
        let day = Window::DAY.calendar(now, &TimeZone::UTC);
        sent.send(usage.used(&key, day).unwrap()).unwrap();
    };
    wait(store.read_usage(at(21), Box::new(look))).unwrap();
    assert_eq!(received.recv().unwrap().to_string(), used);
}

/// Not a test itself: replaces two documents with one number repeatedly, and prints it.
#[test]
fn writer_that_is_killed() {
    let Some(folder) = given() else { return };
    let store: Arc<dyn Store> = Arc::new(opened(&folder, at(10)).store);
    let first = numbers(&*store).map_or(0, |(number, _)| number + 1);
    for number in first.. {
        // The documents move to other keys, so that a partial write would be detected.
        let key = |letter: char, number: u64| Arc::from(format!("{letter}{}", number % 2));
        let json = || Arc::from(number.to_string());
        let change = Change::ReplaceDocuments {
            space: "showcase".into(),
            keep: vec![(key('a', number), json()), (key('b', number), json())],
            forget: vec![key('a', number + 1), key('b', number + 1)],
        };
        let mut row = Draft::new(RowKind::Session, at(10));
        row.message = Some(number.to_string().into());
        wait(store.change(change, row)).unwrap();
        std::io::stdout().lock().write_all(format!("\nkept {number}\n").as_bytes()).unwrap();
    }
}

/// The number in both documents, and how many rows mention it.
fn numbers(store: &dyn Store) -> Option<(u64, usize)> {
    let kept = wait(store.documents("showcase")).unwrap();
    let numbers: Vec<u64> = kept.iter().map(|kept| kept.json.parse().unwrap()).collect();
    let first = *numbers.first()?;
    assert_eq!(numbers, [first, first], "half of a change was kept");
    Some((first, all_rows(store).len()))
}

#[test]
fn documents_changed_together_are_stored_together() {
    let folder = SqliteFixture::default();
    for round in 0..15 {
        let mut child = spawn("kill::writer_that_is_killed", folder.path());
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (mut left, mut acknowledged) = (3 + round * 7, 0_u64);
        for line in lines.map_while(Result::ok) {
            let number = line.strip_prefix("kept ").and_then(|number| number.parse().ok());
            acknowledged = acknowledged.max(number.unwrap_or_default());
            left -= 1;
            if left == 0 {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        let store: Arc<dyn Store> = Arc::new(opened(folder.path(), at(20)).store);
        let (number, rows) = numbers(&*store).unwrap();
        assert!(number >= acknowledged, "{number} was kept, {acknowledged} acknowledged");
        assert_eq!(rows as u64, number + 1, "each change has its row");
        assert_whole(&*store);
        wait(store.close(at(20))).unwrap();
    }
}
