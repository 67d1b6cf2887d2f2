//! What of the showcase is written, how often, and when it cannot be.

use toolgate_session::{Millis, Publisher, Reach, SessionSettings, SocketToken};
use toolgate_store::{Engine, EngineSettings, MemoryBackend, RowQuery};

use super::*;
use crate::dial_in::driver::{DriverEnvironment, SessionDriver};

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

fn key(config_id: &str, infobase_name: Option<&str>) -> EntryKey {
    let infobase_name = infobase_name.map(str::to_owned);
    EntryKey { kind: "client".to_owned(), config_id: config_id.to_owned(), infobase_name }
}

fn keep(key: EntryKey) -> (EntryKey, Option<Arc<ShowcaseEntry>>) {
    // The spelling of numbers stays.
    let tool = r#"{"name":"Найти","input_schema":{"default": 1.50}}"#;
    let publisher = Publisher {
        session_id: "u1".into(),
        infobase_name: "trade".to_owned(),
        host_id: "pc-7".to_owned(),
        last_seen: Millis(9),
    };
    let entry = ShowcaseEntry::restore(key.clone(), [tool], Millis(7), [publisher]);
    (key, Some(Arc::new(entry)))
}

struct Harness {
    memory: MemoryBackend,
    store: Arc<dyn Store>,
    records: Records,
}

impl Harness {
    fn new() -> Self {
        let (memory, now) = (MemoryBackend::default(), Timestamp::UNIX_EPOCH);
        let engine = Engine::inline(memory.clone(), EngineSettings::default(), now).unwrap();
        let store: Arc<dyn Store> = Arc::new(engine);
        let records = Records::start(Arc::clone(&store), Arc::new(Still), Box::new(|| {}));
        Self { memory, store, records }
    }

    async fn kept(&self) -> Vec<EntryKey> {
        let kept = Records::showcase(self.store.as_ref()).await.unwrap();
        kept.into_iter().map(|entry| entry.key).collect()
    }

    async fn messages(&self) -> Vec<String> {
        let page = RowQuery { limit: 1_000, ..RowQuery::default() };
        let rows = self.store.rows(page).await.unwrap();
        rows.into_iter()
            .filter_map(|row| row.draft.message.map(|messages| messages.to_string()))
            .collect()
    }
}

#[tokio::test(start_paused = true)]
async fn what_has_changed_is_one_transaction_with_one_row() {
    let harness = Harness::new();
    let (old, new) = (key("УТ", None), key("УТ", Some("trade")));
    harness.records.note(Note::Showcase(vec![keep(old.clone())]));
    harness.records.flush().await;
    harness.records.note(Note::Showcase(vec![(old, None), keep(new.clone())]));
    harness.records.note(Note::Showcase(vec![(key("never kept", None), None)]));
    harness.records.flush().await;
    assert_eq!(harness.kept().await, [new]);
    assert_eq!(
        harness.messages().await,
        [
            "showcase: 1 tools of client/УТ kept",
            "showcase: client/never kept forgotten, client/УТ forgotten, 1 tools of client/УТ kept",
        ]
    );
    let kept = Records::showcase(harness.store.as_ref()).await.unwrap();
    let entry = kept.first().unwrap();
    assert_eq!(entry.last_seen, Millis(7));
    let publisher = &entry.publishers[0];
    assert_eq!((publisher.host_id.as_str(), publisher.last_seen), ("pc-7", Millis(9)));
    assert!(entry.tools.values().all(|tool| tool.raw.get().contains(r#"{"default": 1.50}"#)));
}

#[tokio::test(start_paused = true)]
async fn of_many_a_row_names_a_few() {
    let harness = Harness::new();
    let many = (0..30).map(|n| keep(key(&format!("c{n:02}"), None)));
    harness.records.note(Note::Showcase(many.collect()));
    harness.records.flush().await;
    let messages = harness.messages().await;
    assert!(
        messages.len() == 1 && messages[0].ends_with("client/c09 kept, and 20 more"),
        "{messages:?}"
    );
    assert_eq!(harness.kept().await.len(), 30);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_written_is_written_later_as_it_is_then() {
    let harness = Harness::new();
    harness.memory.set_broken(true);
    let (stays, goes) = (key("stays", None), key("goes", None));
    harness.records.note(Note::Showcase(vec![keep(stays.clone()), keep(goes.clone())]));
    harness.records.flush().await;
    harness.records.note(Note::Showcase(vec![(goes, None)]));
    harness.records.flush().await;
    harness.memory.set_broken(false);
    assert!(harness.kept().await.is_empty());
    // Nobody asks for it: it is tried again by itself.
    tokio::time::sleep(GATHER * 2).await;
    harness.records.flush().await;
    assert_eq!(harness.kept().await, [stays]);
    assert_eq!(harness.messages().await.len(), 1);
}

#[test]
fn entries_of_older_versions_are_read() {
    let older = r#"{"kind":"client","config_id":"УТ","infobase_name":null,"last_seen":7,"publishers":[["u1","trade"]],"tools":[]}"#;
    let entry = showcase::restore(older).unwrap();
    let expected = Publisher {
        session_id: "u1".into(),
        infobase_name: "trade".to_owned(),
        host_id: "unknown".to_owned(),
        last_seen: Millis(7),
    };
    assert_eq!(entry.publishers, [expected]);
}

/// A driver whose showcase is kept in the store.
fn driver(harness: &Harness, kept: Vec<ShowcaseEntry>, wall: Millis) -> Arc<SessionDriver> {
    let records = harness.records.clone();
    let environment = DriverEnvironment {
        record: Box::new(move |note| records.note(note)),
        random: Box::new(|| Some(1)),
        max_unregistered: 10,
    };
    SessionDriver::start(SessionSettings::default(), kept, wall, environment)
}

/// Registers a session and ends its socket.
fn register(driver: &SessionDriver) {
    let (commands, _inbox) = mpsc::channel(64);
    let socket = driver.open_socket(commands, Arc::new(SocketToken::default()), None);
    driver.receive_text(
        socket,
        r#"{"jsonrpc":"2.0","id":1,"method":"session.register","params":{"client_uid":"u1","kind":"client","version":"1","infobase_name":"trade","ib_session_number":1,"tools":[{"name":"find","input_schema":{}}]}}"#,
    );
    driver.close_socket(socket);
}

/// Lets time pass at once, and what is due happen.
async fn pass(time: Duration) {
    tokio::time::advance(time).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// The showcase lives 5 days from the last register. A register is persisted, so a restart does not
/// shorten or prolong that, and the timer evicts from list and store.
#[tokio::test(start_paused = true)]
async fn the_showcase_lives_five_days_from_the_last_register() {
    const DAY: Duration = Duration::from_hours(24);
    let (harness, began) = (Harness::new(), Millis(1_700_000_000_000));
    let before = driver(&harness, Vec::new(), began);
    register(&before);
    pass(DAY * 4).await;
    register(&before);
    harness.records.flush().await;
    let kept = Records::showcase(harness.store.as_ref()).await.unwrap();
    assert!(kept[0].last_seen >= began.after(DAY * 4), "the refresh is persisted");

    // Another process, with what the first one has written.
    let harness = Harness::new();
    let store = harness.store.as_ref();
    Records::keep(store, kept.clone(), Timestamp::UNIX_EPOCH).await.unwrap();
    let (reach, seen) = (Arc::new(Reach::default()), kept[0].last_seen);
    let restarted = driver(&harness, kept, seen.after(DAY * 4));
    let listed = || restarted.tools(&reach).names().count();
    assert_eq!(listed(), 1, "four days after the last register");
    pass(Duration::from_secs(86_399)).await;
    assert_eq!(listed(), 1);
    pass(Duration::from_secs(1)).await;
    assert_eq!(listed(), 0, "no other event is needed");
    harness.records.flush().await;
    assert!(harness.kept().await.is_empty(), "it is removed from the store too");
}
