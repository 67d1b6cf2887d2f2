//! What sessions do, written down: rows of the audit, and the showcase in the store.
//!
//! Invariant: whoever drives sockets never waits for this; notes that find no room are counted.
//! Invariant: what strangers can make happen at will gives at most [`ROWS`] rows a minute of each
//! kind; the rest is one row with a count.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval};
use toolgate_audit::{Draft, Kind};
use toolgate_session::{Entry, Event, Key, Millis, What};
use toolgate_store::{Change, ChangeError, Kept, NotAudited, NotReadable, Store};

use super::SESSIONS;
use crate::admission::Clock;

/// How many notes may wait.
const WAITING: usize = 10_000;
/// How many rows a minute one kind of event may give.
const ROWS: u64 = 10;
const MINUTE: Duration = Duration::from_mins(1);
/// How long changes of the showcase are gathered.
const GATHER: Duration = Duration::from_millis(500);
/// The space of the store that holds the showcase.
const SPACE: &str = "showcase";

/// Something to be written down.
#[derive(Debug)]
pub enum Note {
    /// Something has happened.
    Event(Event),
    /// An entry of the showcase is to be kept.
    Keep(Arc<Entry>),
    /// An entry of the showcase is to be forgotten.
    Forget(Key),
}

/// Writes down what sessions do.
#[derive(Debug, Clone)]
pub struct Records(mpsc::Sender<Job>);

#[derive(Debug)]
enum Job {
    Note(Note),
    Flush(oneshot::Sender<()>),
}

/// Told whenever the showcase was written.
type Written = Box<dyn Fn() + Send + Sync>;

struct Writer {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// What is to become of entries: kept as they are, or forgotten.
    changed: BTreeMap<Key, Option<Arc<Entry>>>,
    /// Of each kind of event that strangers can cause: since when, how many.
    seen: HashMap<What, (Instant, u64)>,
    /// Rows that were handed over and not yet confirmed.
    unconfirmed: Vec<Confirmation>,
    written: Written,
}

type Confirmation = Pin<Box<dyn Future<Output = Result<u64, NotAudited>> + Send>>;

// === impl Records ===

impl Records {
    /// Starts writing; inside a tokio runtime.
    pub fn start(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        written: Box<dyn Fn() + Send + Sync>,
    ) -> Self {
        let (notes, inbox) = mpsc::channel(WAITING);
        let writer = Writer {
            store,
            clock,
            changed: BTreeMap::new(),
            seen: HashMap::new(),
            unconfirmed: Vec::new(),
            written,
        };
        tokio::spawn(writer.run(inbox));
        Self(notes)
    }

    /// Has something written down, soon.
    pub fn note(&self, note: Note) {
        if self.0.try_send(Job::Note(note)).is_err() {
            tracing::error!(
                "what sessions do cannot be written down fast enough; a row is missing"
            );
        }
    }

    /// Waits until everything noted so far is written.
    pub async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.0.send(Job::Flush(done)).await.is_ok() && flushed.await.is_err() {
            tracing::debug!("whoever writes down what sessions do is gone");
        }
    }

    /// The showcase as the store has it.
    pub async fn showcase(store: &dyn Store) -> Result<Vec<Entry>, NotReadable> {
        let kept = store.kept(SPACE).await?;
        Ok(kept.iter().filter_map(|kept| restore(&kept.json)).collect())
    }
}

// === impl Writer ===

impl Writer {
    async fn run(mut self, mut inbox: mpsc::Receiver<Job>) {
        let mut gathered = interval(GATHER);
        gathered.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                job = inbox.recv() => match job {
                    Some(Job::Note(note)) => self.note(note),
                    Some(Job::Flush(done)) => {
                        self.counts(true);
                        self.settle().await;
                        if done.send(()).is_err() {
                            tracing::debug!("nobody waits for the flush any more");
                        }
                    }
                    None => return self.settle().await,
                },
                _ = gathered.tick() => {
                    self.counts(false);
                    self.settle().await;
                }
            }
        }
    }

    fn note(&mut self, note: Note) {
        match note {
            Note::Keep(entry) => drop(self.changed.insert(entry.key.clone(), Some(entry))),
            Note::Forget(key) => drop(self.changed.insert(key, None)),
            Note::Event(event) => self.event(event),
        }
    }

    fn event(&mut self, event: Event) {
        let Event { what, session_id, text, .. } = event;
        if is_cheap(what) {
            let (_, count) = self.seen.entry(what).or_insert_with(|| (Instant::now(), 0));
            *count += 1;
            if *count > ROWS {
                return;
            }
        }
        let said = if text.is_empty() { what.as_str().replace('_', " ") } else { text.clone() };
        tracing::info!(what = what.as_str(), session_id = session_id.as_deref(), "{said}");
        if !is_audited(what) {
            return;
        }
        let mut row = self.row(what);
        row.session_id = session_id;
        if !text.is_empty() {
            row.message = Some(format!("{}: {text}", what.as_str()).into());
        }
        self.record(row);
    }

    /// Minutes that are over give one row for what was left out of them.
    fn counts(&mut self, all: bool) {
        let over: Vec<(What, u64)> = self
            .seen
            .extract_if(|_, (since, _)| all || since.elapsed() >= MINUTE)
            .map(|(what, (_, count))| (what, count.saturating_sub(ROWS)))
            .collect();
        for (what, left_out) in
            over.into_iter().filter(|(what, count)| *count > 0 && is_audited(*what))
        {
            let mut row = self.row(what);
            row.count = Some(left_out);
            self.record(row);
        }
    }

    fn row(&self, what: What) -> Draft {
        let mut row = Draft::new(Kind::Session, self.clock.now());
        row.server = Some(SESSIONS.into());
        row.error_code = is_refusal(what).then(|| what.as_str().into());
        row.message = Some(what.as_str().into());
        row
    }

    /// Hands a row over; whether it was written is asked later, so that a storm of programs does
    /// not wait for one commit each.
    fn record(&mut self, row: Draft) {
        self.unconfirmed.push(self.store.record(row));
    }

    async fn confirm(&mut self) {
        for confirmation in std::mem::take(&mut self.unconfirmed) {
            if let Err(error) = confirmation.await {
                tracing::error!(%error, "what a session did could not be written down");
            }
        }
    }

    /// Writes what has become of the showcase.
    async fn settle(&mut self) {
        self.confirm().await;
        if self.changed.is_empty() {
            return;
        }
        for (key, entry) in std::mem::take(&mut self.changed) {
            let mut row = Draft::new(Kind::Session, self.clock.now());
            row.server = Some(SESSIONS.into());
            let (kind, config_id) = (&key.kind, &key.config_id);
            let change = if let Some(entry) = &entry {
                let tools = entry.tools.len();
                row.message =
                    Some(format!("showcase: {tools} tools of {kind}/{config_id} kept").into());
                let (space, key) = (SPACE.into(), name(&key));
                Change::Keep(Kept { space, key, json: write(entry).into() })
            } else {
                row.message = Some(format!("showcase: {kind}/{config_id} forgotten").into());
                Change::Forget(SPACE.into(), name(&key))
            };
            match self.store.change(change, row).await {
                // An entry that was never written need not be forgotten.
                Ok(_) | Err(ChangeError::Unknown(_)) => {}
                Err(error) => tracing::error!(%error, "the showcase could not be written"),
            }
        }
        (self.written)();
    }
}

/// What the audit has rows of.
fn is_audited(what: What) -> bool {
    !matches!(what, What::BadFrame | What::LateAnswer | What::Idle | What::DoubledTool)
}

/// What anybody who reaches the listener can make happen at will.
fn is_cheap(what: What) -> bool {
    is_refusal(what) || matches!(what, What::NotRegistered | What::BadFrame)
}

fn is_refusal(what: What) -> bool {
    matches!(
        what,
        What::TakeoverRefused
            | What::OutsideBounds
            | What::RegisterRefused
            | What::AnswerDropped
            | What::TokenRefused
            | What::FrameTooLarge
            | What::Unfinished
            | What::Flooding
            | What::TooMany
    )
}

/// The key under which the store has an entry.
fn name(key: &Key) -> Arc<str> {
    json!([key.kind, key.config_id, key.infobase_name]).to_string().into()
}

fn write(entry: &Entry) -> String {
    let publishers: Vec<Value> =
        entry.publishers.iter().map(|(uid, base)| json!([&**uid, base])).collect();
    let tools: Vec<&str> = entry.tools.values().map(|tool| tool.raw.get()).collect();
    let head = json!({
        "kind": entry.key.kind,
        "config_id": entry.key.config_id,
        "infobase_name": entry.key.infobase_name,
        "last_seen": entry.last_seen.0,
        "publishers": publishers,
        "tools": tools,
    });
    head.to_string()
}

fn restore(json: &str) -> Option<Entry> {
    let kept: Value = serde_json::from_str(json).ok()?;
    let text = |key: &str| Some(kept.get(key)?.as_str()?.to_owned());
    let key = Key {
        kind: text("kind")?,
        config_id: text("config_id")?,
        infobase_name: text("infobase_name"),
    };
    let publishers = kept.get("publishers")?.as_array()?.iter().filter_map(|pair| {
        Some((pair.get(0)?.as_str()?.into(), pair.get(1)?.as_str()?.to_owned()))
    });
    // Definitions are kept as text, so that every number keeps its spelling.
    let tools = kept.get("tools")?.as_array()?.iter().filter_map(Value::as_str);
    let last_seen = Millis(kept.get("last_seen")?.as_u64()?);
    Some(Entry::restore(key, tools, last_seen, publishers))
}
