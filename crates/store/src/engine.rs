//! The engine: every store's order of things.
//!
//! Whoever holds the writer takes whatever waits, does it in one transaction, and answers after the
//! commit. Nobody who wants an answer waits for more to come: a call alone is written alone, on the
//! spot, a crowd shares one commit of the writer thread. Changes of what people set up come before
//! calls that wait. Reader threads answer questions from their own view of the data: one what is
//! set up, one what has been used, one the audit, so that a long search holds up no change.
//!
//! Invariant: answers leave after the commit, never before.
//! Invariant: outcomes are never dropped. What cannot be written now is tried again.
//! Start at [`Engine::start`], then `desk`, `writer`, and `group`, which is one transaction.

mod desk;
mod group;
mod queue;
#[cfg(test)]
mod tests;
mod writer;

use std::{fmt, sync::Arc};

use futures_channel::oneshot;
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use toolgate_audit::{CallId, Checkpoint, Draft, Row, Signer};

use crate::{
    Answer, Asking, Backend, Change, ChangeError, Ending, Fault, FaultKind, Kept, Look, NotAudited,
    NotReadable, Page, Snapshot, Status, Store,
    backend::Reader,
    permit::{Finish, Outcomes},
    reply,
    sync::{
        Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
        thread,
    },
};
use desk::{Desk, OnTheSpot, Way, Window};
use queue::Queue;
use writer::Writer;

/// What a store is started with.
#[derive(Default)]
pub struct Settings {
    /// Signs checkpoints; without it there are none.
    pub signer: Option<Signer>,
    /// When checkpoints are signed.
    pub due: Due,
    /// Gets every checkpoint after it is written, to keep it elsewhere. Runs on the writer thread,
    /// so it must not wait.
    pub on_checkpoint: Option<Box<Tell>>,
}

/// When a checkpoint is signed: after so many rows or so much time, whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// So many rows.
    pub rows: u64,
    /// So much time.
    pub every: SignedDuration,
}

impl Default for Due {
    fn default() -> Self {
        Self { rows: 1_000, every: SignedDuration::from_secs(60) }
    }
}

/// Is told of a checkpoint.
pub type Tell = dyn Fn(&Checkpoint) + Send;

/// A [`Store`] over any [`Backend`].
pub struct Engine {
    desk: Desk,
    window: Window,
    shared: Arc<Shared>,
}

/// What the threads and the engine both look at.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// As of the last transaction.
    generation: AtomicU64,
    /// Admissions and other writes that wait.
    waiting: AtomicUsize,
}

/// More than this are refused at once: an answer that takes minutes helps nobody.
const MAX_WAITING: usize = 10_000;
/// Changes have places of their own: a freeze is taken also when too many calls wait.
const MAX_CHANGES: usize = 1_000;

type Question = Box<dyn FnOnce(&mut dyn Reader) + Send>;

/// What the reader is asked to do.
pub(crate) enum Asked {
    Answer(Question),
    /// Let go of the data; dropped when that is done.
    LetGo(Sender<()>),
}

/// What the writer is asked to do.
pub(crate) enum Job {
    Admit {
        asking: Box<Asking>,
        outcomes: Arc<dyn Outcomes>,
        reply: reply::Sender<Answer, NotAudited>,
    },
    Finish(Box<Finish>),
    Deny(Box<Draft>, reply::Sender<(), NotAudited>),
    Record(Box<Draft>, reply::Sender<u64, NotAudited>),
    Change(Box<(Change, Draft)>, reply::Sender<u64, ChangeError>),
    /// A call goes on as a task until then.
    Continue(CallId, Box<str>, Timestamp),
    /// A task of a call of an earlier process has ended.
    EndTask(Box<(Box<str>, Ending)>),
    Touch(Arc<str>, Timestamp),
    Tick(Timestamp),
    /// The receiver fails as soon as the reader has let go of the data.
    Close(Timestamp, Receiver<()>, reply::Sender<(), NotAudited>),
}

impl Engine {
    /// Starts the threads. Before it returns, intents that a dead process left open have their
    /// `unknown` row.
    pub fn start(backend: impl Backend, settings: Settings, now: Timestamp) -> Result<Self, Fault> {
        let shared = Arc::new(Shared::default());
        let (mut window, mut readers) = (Vec::new(), Vec::new());
        for _ in Way::ALL {
            let (put, questions) = channel();
            window.push(put);
            readers.push((questions, backend.reader()?));
        }
        let mut writer = Writer::new(backend, settings, Arc::clone(&shared), now);
        writer.recover()?;
        let (writer, queue) = (Arc::new(Mutex::new(Some(writer))), Arc::new(Queue::default()));
        let desk = Desk::new(desk::Threaded::new(&writer, &queue));
        spawn("store-writer", move || desk::write_all(&writer, &queue))?;
        for (questions, reader) in readers {
            spawn("store-reader", move || desk::answer_all(&questions, reader))?;
        }
        Ok(Self { desk, window: Window::Thread(window), shared })
    }

    /// Does everything on the spot, without threads: for data that never waits for a disk.
    pub fn on_the_spot(
        backend: impl Backend,
        settings: Settings,
        now: Timestamp,
    ) -> Result<Self, Fault> {
        let shared = Arc::new(Shared::default());
        let reader = Mutex::new(backend.reader()?);
        let mut writer = Writer::new(backend, settings, Arc::clone(&shared), now);
        writer.recover()?;
        let desk = Desk::new(OnTheSpot::new(writer));
        let window = Window::Here(reader, desk.clone());
        Ok(Self { desk, window, shared })
    }

    fn write<T: Send + 'static, E: Send + 'static>(
        &self,
        refuse: fn(Fault) -> E,
        job: impl FnOnce(reply::Sender<T, E>) -> Job,
    ) -> BoxFuture<'static, Result<T, E>> {
        self.put(MAX_WAITING, refuse, job)
    }

    fn put<T: Send + 'static, E: Send + 'static>(
        &self,
        most: usize,
        refuse: fn(Fault) -> E,
        job: impl FnOnce(reply::Sender<T, E>) -> Job,
    ) -> BoxFuture<'static, Result<T, E>> {
        if self.shared.waiting.fetch_add(1, Ordering::Relaxed) >= most {
            self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
            let fault = Fault::new(FaultKind::Busy, "too many calls wait; retry later");
            return Box::pin(std::future::ready(Err(refuse(fault))));
        }
        let (reply, answered) = oneshot::channel();
        self.desk.put(job(reply));
        reply::receive(answered, refuse)
    }

    fn ask<T: Send + 'static>(
        &self,
        way: Way,
        question: impl FnOnce(&mut dyn Reader) -> Result<T, Fault> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, NotReadable>> {
        let (reply, answered) = oneshot::channel();
        let question: Question = Box::new(move |reader| {
            drop(reply.send(question(reader).map_err(NotReadable)));
        });
        self.window.put(way, question);
        reply::receive(answered, NotReadable)
    }
}

impl Store for Engine {
    fn admit(&self, mut asking: Asking) -> BoxFuture<'static, Result<Answer, NotAudited>> {
        asking.draft = asking.draft.cut();
        let (asking, outcomes) = (Box::new(asking), self.desk.outcomes());
        self.write(NotAudited, |reply| Job::Admit { asking, outcomes, reply })
    }

    fn deny(&self, denial: Draft) -> BoxFuture<'static, Result<(), NotAudited>> {
        let denial = Box::new(denial.cut().cut_arguments());
        self.write(NotAudited, |reply| Job::Deny(denial, reply))
    }

    fn record(&self, row: Draft) -> BoxFuture<'static, Result<u64, NotAudited>> {
        let row = Box::new(row.cut());
        self.write(NotAudited, |reply| Job::Record(row, reply))
    }

    fn change(&self, change: Change, row: Draft) -> BoxFuture<'static, Result<u64, ChangeError>> {
        let refuse = |fault| ChangeError::NotAudited(NotAudited(fault));
        let change = Box::new((change, row.cut()));
        self.put(MAX_WAITING + MAX_CHANGES, refuse, |reply| Job::Change(change, reply))
    }

    fn end_task(&self, task: &str, ending: Ending) {
        self.desk.put(Job::EndTask(Box::new((task.into(), ending))));
    }

    fn touch(&self, grant: Arc<str>, now: Timestamp) {
        self.desk.put(Job::Touch(grant, now));
    }

    fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::Acquire)
    }

    fn snapshot(&self) -> BoxFuture<'static, Result<Snapshot, NotReadable>> {
        self.ask(Way::Setup, |reader| reader.snapshot())
    }

    fn kept(&self, space: &str) -> BoxFuture<'static, Result<Vec<Kept>, NotReadable>> {
        let space = space.to_owned();
        self.ask(Way::Setup, move |reader| reader.kept(&space))
    }

    fn rows(&self, page: Page) -> BoxFuture<'static, Result<Vec<Row>, NotReadable>> {
        self.ask(Way::Rows, move |reader| reader.rows(&page))
    }

    fn story(&self, call: CallId) -> BoxFuture<'static, Result<Vec<Row>, NotReadable>> {
        self.ask(Way::Rows, move |reader| reader.story(call))
    }

    fn checkpoints(&self) -> BoxFuture<'static, Result<Vec<Checkpoint>, NotReadable>> {
        self.ask(Way::Rows, |reader| reader.checkpoints())
    }

    fn status(&self) -> BoxFuture<'static, Result<Status, NotReadable>> {
        self.ask(Way::Setup, |reader| reader.status())
    }

    fn look(&self, now: Timestamp, look: Box<Look>) -> BoxFuture<'static, Result<(), NotReadable>> {
        self.ask(Way::Usage, move |reader| {
            let now = now.max(reader.mark()?);
            look(reader.usage(), now);
            Ok(())
        })
    }

    fn tick(&self, now: Timestamp) {
        self.desk.put(Job::Tick(now));
    }

    fn close(&self, now: Timestamp) -> BoxFuture<'static, Result<(), NotAudited>> {
        let (reply, answered) = oneshot::channel();
        // Whoever closes a database last tidies it up, and that should be the writer.
        let (letting_go, gone) = channel();
        self.window.let_go(letting_go);
        self.desk.put(Job::Close(now, gone, reply));
        reply::receive(answered, NotAudited)
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("signer", &self.signer).finish_non_exhaustive()
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Fault> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.map(drop).map_err(|error| Fault::new(FaultKind::Internal, error.to_string()))
}
