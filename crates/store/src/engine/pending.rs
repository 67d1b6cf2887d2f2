//! Pending jobs: the queue in front of the writer, and when it wakes the writer thread.
//!
//! Invariant: jobs leave in the order of their arrival, and only the holder of the writer takes
//! them. So an outcome is written before any later admission by a caller that has seen it.
//! Invariant: changes leave before all other jobs, in their order: a freeze does not wait for the
//! calls that it must stop.

use std::{collections::VecDeque, time::Duration};

use super::Job;
use crate::sync::{Condvar, Mutex};

/// The maximum number of jobs in one commit, so that the first one does not wait long.
const GROUP: usize = 256;
/// Outcomes without a waiting caller are written with the next call, if it arrives within this
/// time: a single caller then needs one commit per call instead of two.
const LINGER: Duration = Duration::from_millis(10);
/// The delay before failed outcomes are retried.
const RETRY: Duration = Duration::from_millis(250);
/// More outcomes than this are left to the writer thread.
const FEW: usize = 16;

#[derive(Default)]
pub(super) struct PendingJobs {
    waiting: Mutex<PendingState>,
    called: Condvar,
}

#[derive(Default)]
struct PendingState {
    jobs: VecDeque<Job>,
    /// Changes of the setup; a caller waits for each of them.
    changes: VecDeque<Job>,
    /// The number of jobs that a caller waits for.
    awaited: usize,
    /// How often jobs were taken.
    taken: u64,
    /// The thread must wake up, even if no job is pending.
    call: bool,
    /// The thread sleeps until it is notified.
    asleep: bool,
    /// No job is accepted or taken any more.
    closed: bool,
}

impl PendingJobs {
    /// Appends a job. After the close it is dropped, which the caller receives as an error.
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

    /// Takes as many jobs as one commit may contain.
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

    /// Takes all jobs if they are few and no caller waits for them; otherwise they are left to the
    /// thread, in order.
    pub(super) fn take_few(&self) -> Option<Vec<Job>> {
        let mut waiting = self.waiting.lock();
        let few = waiting.awaited == 0 && waiting.jobs.len() <= FEW;
        if !few || waiting.closed {
            return None;
        }
        waiting.taken += 1;
        Some(waiting.jobs.drain(..).collect())
    }

    /// Wakes the thread to retry failed outcomes.
    pub(super) fn call(&self) {
        self.waiting.lock().call = true;
        self.called.notify_one();
    }

    /// Rejects new jobs and drops the pending ones, which their callers receive as errors.
    pub(super) fn close(&self) {
        let mut waiting = self.waiting.lock();
        waiting.closed = true;
        let left = (std::mem::take(&mut waiting.changes), std::mem::take(&mut waiting.jobs));
        waiting.awaited = 0;
        drop(waiting);
        drop(left);
    }

    /// Rejects new jobs; the pending ones are still written.
    pub(super) fn end(&self) {
        self.waiting.lock().closed = true;
        self.called.notify_one();
    }

    /// Waits for jobs; `false` when no more can arrive. With `owed`, returns after a short delay so
    /// that failed outcomes are retried.
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
                // The pending jobs may have just arrived; then they have their full delay.
                let taken = waiting.taken;
                let timed_out = self.called.wait_for(&mut waiting, LINGER).timed_out();
                lingered = timed_out && waiting.taken == taken;
            } else if waiting.closed {
                return false;
            } else if owed {
                if self.called.wait_for(&mut waiting, RETRY).timed_out() {
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
