//! What of the showcase is written, how often, and when it cannot be.

use toolgate_session::Millis;
use toolgate_store::{Engine, EngineSettings, MemoryBackend, RowQuery};

use super::*;

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
    let publishers = [("u1".into(), "trade".to_owned())];
    let entry = ShowcaseEntry::restore(key.clone(), [tool], Millis(7), publishers);
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

    async fn said(&self) -> Vec<String> {
        let page = RowQuery { limit: 1_000, ..RowQuery::default() };
        let rows = self.store.rows(page).await.unwrap();
        rows.into_iter().filter_map(|row| row.draft.message.map(|said| said.to_string())).collect()
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
        harness.said().await,
        [
            "showcase: 1 tools of client/УТ kept",
            "showcase: client/never kept forgotten, client/УТ forgotten, 1 tools of client/УТ kept",
        ]
    );
    let kept = Records::showcase(harness.store.as_ref()).await.unwrap();
    let entry = kept.first().unwrap();
    assert_eq!(entry.last_seen, Millis(7));
    assert!(entry.tools.values().all(|tool| tool.raw.get().contains(r#"{"default": 1.50}"#)));
}

#[tokio::test(start_paused = true)]
async fn of_many_a_row_names_a_few() {
    let harness = Harness::new();
    let many = (0..30).map(|n| keep(key(&format!("c{n:02}"), None)));
    harness.records.note(Note::Showcase(many.collect()));
    harness.records.flush().await;
    let said = harness.said().await;
    assert!(said.len() == 1 && said[0].ends_with("client/c09 kept, and 20 more"), "{said:?}");
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
    assert_eq!(harness.said().await.len(), 1);
}
