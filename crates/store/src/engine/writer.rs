//! The writer: writes a group of jobs and answers them.

use std::{
    collections::{HashMap, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use jiff::Timestamp;
use toolgate_audit::{Checkpoint, Coalescer, Draft};

use super::{
    EngineSettings, Finish, Job, Shared,
    group::{Group, JobResult},
};
use crate::{
    AdmitOutcome, Admitted, Backend, ChangeError, NotAudited, StoreError, StoreErrorKind,
    sync::{
        atomic::Ordering,
        mpsc::{Receiver, channel},
    },
};

/// More calls than this at once are better off with one commit for several.
const FEW: usize = 4;

pub(super) struct Writer<B> {
    backend: B,
    settings: EngineSettings,
    shared: Arc<Shared>,
    memory: WriterState,
    /// Outcomes that could not be written yet. Calls that are open are their bound.
    backlog: VecDeque<Finish>,
    /// Calls that were admitted here and have not ended.
    under_way: usize,
}

/// What the writer remembers from one group to the next.
pub(super) struct WriterState {
    /// The latest time it was told.
    pub(super) now: Timestamp,
    /// The generation it knows.
    pub(super) generation: u64,
    /// When it last looked for what can be forgotten.
    pub(super) swept: Timestamp,
    pub(super) coalescer: Coalescer,
    /// Rows of minutes that are over and not written yet.
    pub(super) owed: Vec<Draft>,
    /// Grants that were used since the last tick, and when.
    pub(super) touched: HashMap<Arc<str>, Timestamp>,
}

impl<B: Backend> Writer<B> {
    pub(super) fn new(
        backend: B,
        settings: EngineSettings,
        shared: Arc<Shared>,
        now: Timestamp,
    ) -> Self {
        let memory = WriterState {
            now,
            generation: 0,
            swept: now,
            coalescer: Coalescer::default(),
            owed: Vec::new(),
            touched: HashMap::new(),
        };
        Self { backend, settings, shared, memory, backlog: VecDeque::new(), under_way: 0 }
    }

    /// Ends what dead processes left open.
    pub(super) fn recover(&mut self) -> Result<(), StoreError> {
        let mut left = 1;
        while left > 0 {
            self.transact(|group| {
                left = group.recover()?;
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Writes what belongs to the end, when nobody is left to ask for it.
    pub(super) fn close(&mut self) {
        let (now, nobody) = (self.memory.now, futures_channel::oneshot::channel().0);
        drop(self.write(vec![Job::Close(now, channel().1, nobody)]));
    }

    /// Whether waking a thread for a call would take longer than to write it: if a commit waits for
    /// nothing, and there are too few calls to share one.
    pub(super) fn is_quick(&self) -> bool {
        self.backend.is_quick() && self.under_way <= FEW
    }

    /// Whether there are outcomes that could not be written yet.
    pub(super) fn owes(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Writes a group and answers it; gives back the answer to a wish to close.
    pub(super) fn write(&mut self, mut jobs: Vec<Job>) -> Option<Closing> {
        let waited = jobs.iter().filter(|job| job.waits()).count();
        self.shared.waiting.fetch_sub(waited, Ordering::Relaxed);
        let mut done = Vec::with_capacity(jobs.len());
        let backlog = std::mem::take(&mut self.backlog);
        let mut old = Vec::with_capacity(backlog.len());
        let result = self.transact(|group| {
            for finish in &backlog {
                old.push(group.finish(finish)?);
            }
            for job in &mut jobs {
                done.push(group.run(job)?);
            }
            Ok(())
        });
        if let Err(fault) = result {
            self.backlog = backlog;
            return jobs.into_iter().filter_map(|job| self.fail(job, &fault)).last();
        }
        self.under_way +=
            done.iter().filter(|done| matches!(done, JobResult::Admitted { .. })).count();
        let ended = old.len() + jobs.iter().filter(|job| matches!(job, Job::Finish(_))).count();
        self.under_way = self.under_way.saturating_sub(ended);
        for (finish, done) in backlog.into_iter().zip(old) {
            answer(Job::Finish(Box::new(finish)), done);
        }
        jobs.into_iter().zip(done).filter_map(|(job, done)| answer(job, done)).last()
    }

    /// One transaction, with what belongs to every one.
    fn transact(
        &mut self,
        mut work: impl FnMut(&mut Group<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (memory, key) = (&mut self.memory, self.settings.signer.as_ref());
        let due = self.settings.due;
        let mut generation = 0;
        let mut signed: Option<Checkpoint> = None;
        let backend = &mut self.backend;
        let transacted = catch_unwind(AssertUnwindSafe(|| {
            backend.transact(&mut |transaction| {
                let mut group = Group::begin(transaction, memory)?;
                work(&mut group)?;
                (generation, signed) = group.end(key, due)?;
                Ok(())
            })
        }));
        // One that panics must not take the writer with it, and every later call with the writer.
        let mistake =
            |_| Err(StoreError::new(StoreErrorKind::Internal, "writing failed by a mistake"));
        transacted.unwrap_or_else(mistake)?;
        self.memory.owed.clear();
        self.shared.generation.store(generation, Ordering::Release);
        if let (Some(checkpoint), Some(tell)) = (&signed, &self.settings.on_checkpoint) {
            tell(checkpoint);
        }
        Ok(())
    }

    fn fail(&mut self, job: Job, fault: &StoreError) -> Option<Closing> {
        let refused = || NotAudited(fault.clone());
        match job {
            Job::Admit { reply, .. } => drop(reply.send(Err(refused()))),
            Job::Finish(finish) => self.backlog.push_back(*finish),
            Job::Deny(_, reply) => drop(reply.send(Err(refused()))),
            Job::Record(_, reply) => drop(reply.send(Err(refused()))),
            Job::Change(_, reply) => drop(reply.send(Err(ChangeError::NotAudited(refused())))),
            Job::Touch(..) | Job::Tick(_) => {}
            Job::Close(_, gone, reply) => {
                return Some(Closing { gone, reply, result: Err(refused()) });
            }
        }
        None
    }
}

/// A wish to close, and what came of it.
pub(super) struct Closing {
    /// Fails as soon as the reader has let go of the data.
    pub(super) gone: Receiver<()>,
    pub(super) reply: crate::reply::Sender<(), NotAudited>,
    pub(super) result: Result<(), NotAudited>,
}

impl Job {
    /// Counts among those that wait for the writer.
    fn waits(&self) -> bool {
        matches!(self, Job::Admit { .. } | Job::Deny(..) | Job::Record(..) | Job::Change(..))
    }

    /// Somebody wants an answer.
    pub(super) fn is_awaited(&self) -> bool {
        match self {
            Job::Finish(finish) => finish.reply.is_some(),
            Job::Touch(..) | Job::Tick(_) => false,
            _ => true,
        }
    }
}

/// Tells whoever asked; they may be gone, which is fine.
fn answer(job: Job, done: JobResult) -> Option<Closing> {
    match (job, done) {
        (
            Job::Admit { outcomes, reply, .. },
            JobResult::Admitted { call_id, intent, seq, verdict },
        ) => {
            // An answer that nobody hears drops its ticket, which writes `unknown`.
            let admitted = Admitted::new(call_id, *intent, seq, verdict, outcomes);
            drop(reply.send(Ok(AdmitOutcome::Admitted(admitted))));
        }
        (Job::Admit { reply, .. }, JobResult::Refused(verdict)) => {
            drop(reply.send(Ok(AdmitOutcome::Refused(verdict))));
        }
        (Job::Admit { reply, .. }, JobResult::Held(verdict)) => {
            drop(reply.send(Ok(AdmitOutcome::Held(verdict))));
        }
        (Job::Admit { reply, .. }, JobResult::NotWaiting) => {
            drop(reply.send(Ok(AdmitOutcome::NotWaiting)))
        }
        (Job::Admit { reply, .. }, JobResult::Stale) => drop(reply.send(Ok(AdmitOutcome::Stale))),
        (Job::Admit { reply, .. }, JobResult::Fault(fault)) => {
            drop(reply.send(Err(NotAudited(fault))));
        }
        (Job::Finish(finish), JobResult::Settled(settled)) => {
            if let Some(reply) = finish.reply {
                drop(reply.send(Ok(settled)));
            }
        }
        (Job::Deny(_, reply), _) => drop(reply.send(Ok(()))),
        (Job::Record(_, reply), JobResult::Written(seq)) => drop(reply.send(Ok(seq))),
        (Job::Change(_, reply), JobResult::Changed(changed)) => drop(reply.send(changed)),
        (Job::Close(_, gone, reply), _) => return Some(Closing { gone, reply, result: Ok(()) }),
        _ => {}
    }
    None
}
