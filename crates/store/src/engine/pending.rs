//! The queue: jobs that wait to be written, and when the writer thread gets up for them.
//!
//! Invariant: jobs are taken in the order in which they were put, and only by whoever holds the
//! writer. So an outcome is written before the next admission of whoever heard of it.
//! Invariant: changes are taken before everything else, in their order: a freeze does not wait for
//! the calls that it is to stop.

use std::{collections::VecDeque, time::Duration};

use super::Job;
use crate::sync::{Condvar, Mutex};

/// At most so many jobs share one commit, so that the first of them need not wait for long.
const GROUP: usize = 256;
/// Outcomes that nobody waits for are written with the next call, if it comes as soon as this:
/// a caller alone then needs one commit for each call instead of two.
const LINGER: Duration = Duration::from_millis(10);
/// How soon outcomes that could not be written are tried again.
const AGAIN: Duration = Duration::from_millis(250);
/// More outcomes than this are the thread's work.
const FEW: usize = 16;

#[derive(Default)]
pub(super) struct PendingJobs {
    waiting: Mutex<PendingState>,
    called: Condvar,
}

#[derive(Default)]
struct PendingState {
    jobs: VecDeque<Job>,
    /// Changes of what people set up; all of them are awaited.
    changes: VecDeque<Job>,
    /// How many of them somebody wants an answer to.
    awaited: usize,
    /// How often they were taken.
    taken: u64,
    /// The thread is to look, though nothing may wait.
    call: bool,
    /// The thread sleeps until it is called.
    asleep: bool,
    /// Nothing more is put, or taken.
    closed: bool,
}

impl PendingJobs {
    /// Puts a job at the end. After the close it is dropped, which answers.
    pub(super) fn put(&self, job: Job) {
        let mut waiting = self.waiting.lock();
        if waiting.closed {
            drop(waiting);
            drop(job);
            return;
        }
        let awaited = job.is_awaited();
        waiting.awaited += usize::from(awaited);
        if matches!(job, Job::Change(..)) {
            waiting.changes.push_back(job);
        } else {
            waiting.jobs.push_back(job);
        }
        if awaited || waiting.asleep {
            drop(waiting);
            self.called.notify_one();
        }
    }

    /// As many as one commit may take.
    pub(super) fn take(&self) -> Vec<Job> {
        let mut waiting = self.waiting.lock();
        let changes = waiting.changes.len().min(GROUP);
        let mut jobs: Vec<Job> = waiting.changes.drain(..changes).collect();
        let rest = waiting.jobs.len().min(GROUP - changes);
        jobs.extend(waiting.jobs.drain(..rest));
        waiting.awaited -= jobs.iter().filter(|job| job.is_awaited()).count();
        waiting.taken += 1;
        jobs
    }

    /// Everything, if it is little and nobody waits for it: else it is the thread's work, and
    /// whoever comes stands behind.
    pub(super) fn take_few(&self) -> Option<Vec<Job>> {
        let mut waiting = self.waiting.lock();
        let few = waiting.awaited == 0 && waiting.jobs.len() <= FEW;
        if !few || waiting.closed {
            return None;
        }
        waiting.taken += 1;
        Some(waiting.jobs.drain(..).collect())
    }

    /// Has the thread look after what is owed.
    pub(super) fn call(&self) {
        self.waiting.lock().call = true;
        self.called.notify_one();
    }

    /// Nothing more is put; what is there is dropped, which answers.
    pub(super) fn close(&self) {
        let mut waiting = self.waiting.lock();
        waiting.closed = true;
        let left = (std::mem::take(&mut waiting.changes), std::mem::take(&mut waiting.jobs));
        waiting.awaited = 0;
        drop(waiting);
        drop(left);
    }

    /// Nobody is left to put anything; what is there is still to be written.
    pub(super) fn end(&self) {
        self.waiting.lock().closed = true;
        self.called.notify_one();
    }

    /// Waits until there is something to write; `false` when nothing more will come. If something
    /// is `owed`, it is to be tried again before long.
    pub(super) fn wait(&self, owed: bool) -> bool {
        let mut waiting = self.waiting.lock();
        let mut lingered = false;
        loop {
            if waiting.awaited > 0 || std::mem::take(&mut waiting.call) {
                return true;
            }
            if !waiting.jobs.is_empty() {
                if lingered || waiting.closed {
                    return true;
                }
                // What waits now may have been put a moment ago: then it has its time before it.
                let taken = waiting.taken;
                let timed_out = self.called.wait_for(&mut waiting, LINGER).timed_out();
                lingered = timed_out && waiting.taken == taken;
            } else if waiting.closed {
                return false;
            } else if owed {
                if self.called.wait_for(&mut waiting, AGAIN).timed_out() {
                    return true;
                }
            } else {
                waiting.asleep = true;
                self.called.wait(&mut waiting);
                waiting.asleep = false;
            }
        }
    }
}
