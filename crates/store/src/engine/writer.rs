//! The writer: writes a group of jobs and sends the replies.

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

/// With more concurrent calls than this, a shared commit is faster.
const FEW: usize = 4;

pub(super) struct Writer<B> {
    backend: B,
    settings: EngineSettings,
    shared: Arc<Shared>,
    memory: WriterState,
    /// Outcomes that could not be written yet; bounded by the number of open calls.
    backlog: VecDeque<Finish>,
    /// Open calls that were admitted by this writer.
    under_way: usize,
}

/// What the writer retains between groups.
pub(super) struct WriterState {
    /// The latest time it has received.
    pub(super) now: Timestamp,
    /// The last known generation.
    pub(super) generation: u64,
    /// When it last pruned.
    pub(super) swept: Timestamp,
    pub(super) coalescer: Coalescer,
    /// Rows of finished minutes that are not written yet.
    pub(super) owed: Vec<Draft>,
    /// Grants used since the last tick, with the time.
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

    /// Ends calls that exited processes left open.
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

    /// Writes what a close requires, when the last handle is dropped.
    pub(super) fn close(&mut self) {
        let (now, unanswered) = (self.memory.now, futures_channel::oneshot::channel().0);
        drop(self.write(vec![Job::Close(now, channel().1, unanswered)]));
    }

    /// Whether writing a call inline is faster than waking a thread: the commit waits for nothing,
    /// and there are too few calls to share one.
    pub(super) fn is_quick(&self) -> bool {
        self.backend.is_quick() && self.under_way <= FEW
    }

    /// Whether outcomes wait for a retry.
    pub(super) fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Writes a group and sends its replies; returns the reply to a close.
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

    /// Runs one transaction, including what every group ends with.
    fn transact(
        &mut self,
        mut work: impl FnMut(&mut Group<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (memory, key) = (&mut self.memory, self.settings.signer.as_ref());
        let due = self.settings.due;
        let (mut generation, mut approvals) = (0, 0);
        let mut signed: Option<Checkpoint> = None;
        let backend = &mut self.backend;
        let transacted = catch_unwind(AssertUnwindSafe(|| {
            backend.transact(&mut |transaction| {
                let mut group = Group::begin(transaction, memory)?;
                work(&mut group)?;
                (generation, approvals, signed) = group.end(key, due)?;
                Ok(())
            })
        }));
        // A panic must not stop the writer, and with it every later call.
        let panicked = |_| Err(StoreError::new(StoreErrorKind::Internal, "panic while writing"));
        let transacted = transacted.unwrap_or_else(panicked);
        let shared = &self.shared;
        let count = if transacted.is_ok() { &shared.writes } else { &shared.failed_writes };
        count.fetch_add(1, Ordering::Relaxed);
        transacted?;
        self.memory.owed.clear();
        self.shared.generation.store(generation, Ordering::Release);
        self.shared.approvals.store(approvals, Ordering::Release);
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
            Job::Touch(..)
            | Job::Keep(_)
            | Job::Deliver(..)
            | Job::Tick(_)
            | Job::Continue(..)
            | Job::EndTask(_) => {}
            Job::Close(_, gone, reply) => {
                return Some(Closing { gone, reply, result: Err(refused()) });
            }
        }
        None
    }
}

/// A close and its result.
pub(super) struct Closing {
    /// Fails as soon as the readers have closed the data.
    pub(super) gone: Receiver<()>,
    pub(super) reply: crate::reply::Sender<(), NotAudited>,
    pub(super) result: Result<(), NotAudited>,
}

impl Job {
    /// Whether the job is included in the number of waiting jobs.
    fn waits(&self) -> bool {
        matches!(self, Job::Admit { .. } | Job::Deny(..) | Job::Record(..) | Job::Change(..))
    }

    /// Whether a caller waits for the reply.
    pub(super) fn is_awaited(&self) -> bool {
        match self {
            Job::Finish(finish) => finish.reply.is_some(),
            Job::Touch(..)
            | Job::Keep(_)
            | Job::Deliver(..)
            | Job::Tick(_)
            | Job::Continue(..)
            | Job::EndTask(_) => false,
            _ => true,
        }
    }
}

/// Sends the reply; the caller may be gone, which is not an error.
fn answer(job: Job, done: JobResult) -> Option<Closing> {
    match (job, done) {
        (
            Job::Admit { outcomes, reply, .. },
            JobResult::Admitted { call_id, intent, seq, verdict },
        ) => {
            // If the caller is gone, the dropped ticket records `unknown`.
            let admitted = Admitted::new(call_id, *intent, seq, verdict, outcomes);
            drop(reply.send(Ok(AdmitOutcome::Admitted(admitted))));
        }
        (Job::Admit { reply, .. }, JobResult::Refused(verdict)) => {
            drop(reply.send(Ok(AdmitOutcome::Refused(verdict))));
        }
        (Job::Admit { reply, .. }, JobResult::Held(verdict, approval)) => {
            drop(reply.send(Ok(AdmitOutcome::Held(verdict, approval))));
        }
        (Job::Admit { reply, .. }, JobResult::AnsweredNo(approval)) => {
            drop(reply.send(Ok(AdmitOutcome::AnsweredNo(approval))));
        }
        (Job::Admit { reply, .. }, JobResult::NotWaiting) => {
            drop(reply.send(Ok(AdmitOutcome::NotWaiting)));
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
