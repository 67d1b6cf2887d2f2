//! Records of what sessions do: rows of the audit, and the showcase in the store.
//!
//! Invariant: the driver of the sessions never waits for this.
//! Invariant: the number of rows is bounded. Events beyond the limits of `record/limit.rs`, or without
//! room in the queue, are counted, and a row carries the count.
//! Invariant: no change of the showcase is lost on the way to the store; a failed write is retried.

mod limit;
mod showcase;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval};
use toolgate_admission::environment::Clock;
use toolgate_admission::reserved::SESSIONS;
use toolgate_audit::{Draft, RowKind};
use toolgate_session::{EntryKey, SessionEvent, SessionEventKind, ShowcaseEntry};
use toolgate_store::{ChangeError, Document, NotAudited, NotReadable, Store};

use self::limit::{Counted, EventLimit};
use self::showcase::{Changes, SPACE, restore};

/// How many notes may wait.
const WAITING: usize = 10_000;
/// How long changes of the showcase are coalesced.
const GATHER: Duration = Duration::from_millis(500);

/// Something to record.
#[derive(Debug)]
pub enum Note {
    /// An event.
    Event(SessionEvent),
    /// Entries of the showcase have changed together: kept as they are now, or forgotten.
    Showcase(Vec<(EntryKey, Option<Arc<ShowcaseEntry>>)>),
}

/// Records what sessions do.
#[derive(Debug, Clone)]
pub struct Records {
    jobs: mpsc::Sender<Job>,
    /// At most one per entry of the showcase, so they need no queue.
    changes: Arc<Mutex<Changes>>,
    limit: Arc<Mutex<EventLimit>>,
}

#[derive(Debug)]
enum Job {
    Event(SessionEvent),
    Flush(oneshot::Sender<()>),
}

/// Called whenever the showcase was written.
type Written = Box<dyn Fn() + Send + Sync>;

struct Writer {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    changes: Arc<Mutex<Changes>>,
    /// The showcase could not be written; logged once.
    failing: bool,
    limit: Arc<Mutex<EventLimit>>,
    /// Rows that the store has not confirmed yet.
    unconfirmed: Vec<Confirmation>,
    written: Written,
}

type Confirmation = Pin<Box<dyn Future<Output = Result<u64, NotAudited>> + Send>>;

// === impl Records ===

impl Records {
    /// The space of a store that holds the showcase.
    pub const SPACE: &str = SPACE;

    /// Starts writing; inside a tokio runtime.
    pub fn start(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        written: Box<dyn Fn() + Send + Sync>,
    ) -> Self {
        let (jobs, inbox) = mpsc::channel(WAITING);
        let changes = Arc::new(Mutex::new(Changes::default()));
        let limit = Arc::new(Mutex::new(EventLimit::default()));
        let writer = Writer {
            store,
            clock,
            changes: Arc::clone(&changes),
            failing: false,
            limit: Arc::clone(&limit),
            unconfirmed: Vec::new(),
            written,
        };
        tokio::spawn(writer.run(inbox));
        Self { jobs, changes, limit }
    }

    /// Queues something to record.
    pub fn note(&self, note: Note) {
        let event = match note {
            Note::Event(event) => event,
            Note::Showcase(changes) => return self.changes.lock().add(changes),
        };
        let what = event.what;
        if !self.limit.lock().admits(what, event.session_id.as_ref(), Instant::now()) {
            return;
        }
        if self.jobs.try_send(Job::Event(event)).is_err() {
            self.limit.lock().leave_out(what);
        }
    }

    /// Waits until everything noted so far is written.
    pub async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.jobs.send(Job::Flush(done)).await.is_ok() && flushed.await.is_err() {
            tracing::debug!("the recorder of session events has stopped");
        }
    }

    /// Puts entries into the showcase of a store that no gateway uses.
    pub async fn keep(
        store: &dyn Store,
        entries: Vec<ShowcaseEntry>,
        now: Timestamp,
    ) -> Result<(), ChangeError> {
        let entries = entries.into_iter().map(|entry| (entry.key.clone(), Some(Arc::new(entry))));
        let mut changes = Changes::default();
        changes.add(entries.collect());
        if changes.is_empty() {
            return Ok(());
        }
        store.change(changes.change(), row(&changes, now)).await.map(drop)
    }

    /// The entries of the showcase, as they were read from [`Records::SPACE`] of a store.
    pub fn entries(kept: &[Document]) -> Vec<ShowcaseEntry> {
        kept.iter().filter_map(|kept| restore(&kept.json)).collect()
    }

    /// The showcase as the store has it.
    pub async fn showcase(store: &dyn Store) -> Result<Vec<ShowcaseEntry>, NotReadable> {
        Ok(Self::entries(&store.documents(SPACE).await?))
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
                    Some(Job::Event(event)) => self.event(event),
                    Some(Job::Flush(done)) => {
                        self.record_counts(true);
                        self.settle().await;
                        if done.send(()).is_err() {
                            tracing::debug!("the caller of the flush is gone");
                        }
                    }
                    None => return self.settle().await,
                },
                _ = gathered.tick() => {
                    self.record_counts(false);
                    self.settle().await;
                }
            }
        }
    }

    fn event(&mut self, event: SessionEvent) {
        let SessionEvent { what, session_id, text, .. } = event;
        let message = if text.is_empty() { what.as_str().replace('_', " ") } else { text.clone() };
        tracing::info!(what = what.as_str(), session_id = session_id.as_deref(), "{message}");
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

    /// Records what was only counted, once its minute is over or at a flush.
    fn record_counts(&mut self, flush: bool) {
        let counted = self.limit.lock().take(Instant::now(), flush);
        for Counted { what, session_id, count } in counted {
            let session = session_id.as_deref();
            tracing::info!(
                what = what.as_str(),
                session_id = session,
                count,
                "more session events"
            );
            if is_audited(what) {
                let mut row = self.row(what);
                row.session_id = session_id;
                row.count = Some(count);
                self.record(row);
            }
        }
    }

    fn row(&self, what: SessionEventKind) -> Draft {
        let mut row = Draft::new(RowKind::Session, self.clock.now());
        row.server = Some(SESSIONS.into());
        row.error_code = is_refusal(what).then(|| what.as_str().into());
        row.message = Some(what.as_str().into());
        row
    }

    /// Queues a row; the confirmation is awaited later, so that many events share a commit.
    fn record(&mut self, row: Draft) {
        self.unconfirmed.push(self.store.record(row));
    }

    async fn confirm(&mut self) {
        for confirmation in std::mem::take(&mut self.unconfirmed) {
            if let Err(error) = confirmation.await {
                tracing::error!(%error, "session event not recorded");
            }
        }
    }

    /// Writes the changes of the showcase, in one transaction.
    async fn settle(&mut self) {
        self.confirm().await;
        let changes = std::mem::take(&mut *self.changes.lock());
        if changes.is_empty() {
            return;
        }
        let row = row(&changes, self.clock.now());
        match self.store.change(changes.change(), row).await {
            Ok(_) => {
                self.failing = false;
                (self.written)();
            }
            Err(error) => {
                if !std::mem::replace(&mut self.failing, true) {
                    tracing::error!(%error, "showcase not written; retrying");
                }
                self.changes.lock().put_back(changes);
            }
        }
    }
}

fn row(changes: &Changes, now: Timestamp) -> Draft {
    let mut row = Draft::new(RowKind::Session, now);
    row.server = Some(SESSIONS.into());
    row.message = Some(changes.row_message().into());
    row
}

/// Whether the event gets a row in the audit.
fn is_audited(what: SessionEventKind) -> bool {
    !matches!(
        what,
        SessionEventKind::BadFrame
            | SessionEventKind::LateAnswer
            | SessionEventKind::Idle
            | SessionEventKind::DoubledTool
    )
}

fn is_refusal(what: SessionEventKind) -> bool {
    matches!(
        what,
        SessionEventKind::TakeoverRefused
            | SessionEventKind::OutsideBounds
            | SessionEventKind::ShowcaseFull
            | SessionEventKind::ListsFull
            | SessionEventKind::RegisterRefused
            | SessionEventKind::TooManyAway
            | SessionEventKind::AnswerDropped
            | SessionEventKind::TokenRefused
            | SessionEventKind::FrameTooLarge
            | SessionEventKind::Unfinished
            | SessionEventKind::Flooding
            | SessionEventKind::TooMany
    )
}
