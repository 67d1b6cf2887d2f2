//! The supervisor of one child: waits for its exit, ends it, reports why.
//!
//! Ending has three steps: stdin is closed and the child has [`VOLUNTARY`] to exit; then SIGTERM to
//! the group and [`TERMINATING`]; then SIGKILL to the group. After the leader has exited, for any
//! reason, the rest of its group is killed.
//!
//! Invariant: dropping the supervisor (also when the runtime shuts down) kills the group. A process
//! that has left the group with `setsid` is out of reach.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolgate_gateway::channel::Inbox;
use toolgate_os::group;
use toolgate_os::process::signal_of;

use super::output::OutputEnd;
use super::stderr::StderrWritten;
use super::watch::{ChildEnd, ChildWatch};

/// How long a child has to exit once its stdin is closed.
const VOLUNTARY: Duration = Duration::from_secs(3);
/// How long it has after SIGTERM.
const TERMINATING: Duration = Duration::from_secs(2);
/// How long SIGKILL may take; longer only if the kernel hangs.
const KILLING: Duration = Duration::from_secs(5);
/// How long the pipes of a dead child are still read: a process outside the group may hold them.
const DRAINING: Duration = Duration::from_secs(1);
/// How long a child that has closed a pipe has to exit, so that its exit code can be reported.
const EXITING: Duration = Duration::from_secs(1);

/// A child as the leader of its process group.
#[derive(Debug)]
pub(super) struct Group(group::Group);

impl Group {
    pub(super) fn new(group: group::Group) -> Self {
        Self(group)
    }

    /// Waits for the leader, reaps it, and kills the rest of its group. Cancel-safe.
    async fn wait(&mut self) -> io::Result<ExitStatus> {
        // Waits for the leader alone at first: as process 1 the gateway adopts orphans, and would
        // wait for them although they have not been stopped yet.
        let status = self.0.leader_ended().await;
        // The id of a group is not reused while a member lives.
        self.kill();
        self.0.all_ended().await?;
        status
    }

    /// Passes a signal on.
    fn send(&self, number: i32) {
        self.log_failure("a signal", self.0.send(number));
    }

    fn terminate(&self) {
        self.log_failure("SIGTERM", self.0.terminate());
    }

    fn kill(&mut self) {
        let result = self.0.kill();
        self.log_failure("SIGKILL", result);
    }

    fn log_failure(&self, signal: &str, result: io::Result<()>) {
        if let Err(error) = result {
            tracing::debug!(pid = self.0.id(), %error, "cannot send {signal} to a process group");
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Without an id the leader is reaped, and `wait` has killed the rest.
        if self.0.id().is_some() {
            self.kill();
        }
    }
}

/// Watches one child until it has exited.
pub(super) struct Supervisor {
    pub(super) group: Group,
    pub(super) input: Task<io::Result<()>>,
    pub(super) output: Task<OutputEnd>,
    pub(super) stderr: Task<()>,
    pub(super) stderr_written: StderrWritten,
    pub(super) inbox: Arc<dyn Inbox>,
    pub(super) ending: CancellationToken,
    pub(super) ended: CancellationToken,
    /// Signals to pass on.
    pub(super) signals: Option<broadcast::Receiver<i32>>,
    pub(super) watch: Option<ChildWatch>,
}

/// The first event.
enum Cause {
    Exited(io::Result<ExitStatus>),
    Output(OutputEnd),
    Input,
    Requested,
}

impl Supervisor {
    /// Runs until the child has exited and its exit is reported.
    pub(super) async fn run(mut self) {
        let _ended = self.ended.clone().drop_guard();
        let why = match self.first().await {
            Cause::Exited(status) => self.exited(&status).await,
            Cause::Requested => {
                self.end().await;
                "closed by the gateway".to_owned()
            }
            Cause::Output(OutputEnd::Closed) => self.hung_up("its output").await,
            Cause::Input => self.hung_up("its input").await,
            Cause::Output(OutputEnd::TooLong { limit }) => {
                self.end().await;
                format!("it printed a line of more than {limit} bytes, the limit for one message")
            }
        };
        // All tasks of the child have stopped, so nothing follows `closed`.
        self.input.stop().await;
        self.output.stop().await;
        self.stderr.stop().await;
        self.inbox.closed(&why);
    }

    async fn first(&mut self) -> Cause {
        loop {
            tokio::select! {
                // The pipes of a dead child close as well; its exit status is more useful.
                biased;
                status = wait(&mut self.group, self.watch.as_ref()) => return Cause::Exited(status),
                end = self.output.finish() => {
                    return Cause::Output(end.unwrap_or(OutputEnd::Closed));
                }
                () = self.ending.cancelled() => return Cause::Requested,
                _ = self.input.finish() => return Cause::Input,
                number = signal(&mut self.signals) => self.group.send(number),
            }
        }
    }

    async fn exited(&mut self, status: &io::Result<ExitStatus>) -> String {
        self.drain().await;
        let what = match status {
            Ok(status) => match (status.code(), signal_of(*status)) {
                (Some(code), _) => format!("the process exited with code {code}"),
                (None, Some(signal)) => format!("the process was ended by signal {signal}"),
                (None, None) => "the process ended".to_owned(),
            },
            Err(error) => format!("the process is lost: {error}"),
        };
        self.stderr_written.after(what)
    }

    /// A pipe was closed. Usually the child is exiting; if not, it is no longer usable.
    async fn hung_up(&mut self, what: &str) -> String {
        let exit = wait(&mut self.group, self.watch.as_ref());
        if let Ok(status) = timeout(EXITING, exit).await {
            return self.exited(&status).await;
        }
        self.end().await;
        self.stderr_written.after(format!("the process closed {what} but did not exit"))
    }

    async fn end(&mut self) {
        self.ending.cancel();
        let (group, watch) = (&mut self.group, self.watch.as_ref());
        if ended_within(VOLUNTARY, group, watch, &mut self.signals).await.is_none() {
            self.group.terminate();
            let (group, watch) = (&mut self.group, self.watch.as_ref());
            if ended_within(TERMINATING, group, watch, &mut self.signals).await.is_none() {
                self.group.kill();
                let exit = wait(&mut self.group, self.watch.as_ref());
                if timeout(KILLING, exit).await.is_err() {
                    tracing::warn!(pid = self.group.0.id(), "child still runs after SIGKILL");
                }
            }
        }
        self.drain().await;
    }

    /// Lets the readers empty the pipes.
    async fn drain(&mut self) {
        let readers = async {
            self.output.finish().await;
            self.stderr.finish().await;
        };
        if timeout(DRAINING, readers).await.is_err() {
            tracing::debug!("pipes of an exited child are held by a process outside its group");
        }
    }
}

/// Waits for the leader and reports its end. Cancel-safe.
async fn wait(group: &mut Group, watch: Option<&ChildWatch>) -> io::Result<ExitStatus> {
    let status = group.wait().await;
    if let (Some(watch), Ok(status)) = (watch, &status) {
        watch.ended(ChildEnd::Exited(*status));
    }
    status
}

/// Waits for the leader, and passes signals on meanwhile; `None` if it takes longer.
async fn ended_within(
    limit: Duration,
    group: &mut Group,
    watch: Option<&ChildWatch>,
    signals: &mut Option<broadcast::Receiver<i32>>,
) -> Option<()> {
    let ended = async {
        loop {
            tokio::select! {
                biased;
                _ = wait(group, watch) => return,
                number = signal(signals) => group.send(number),
            }
        }
    };
    timeout(limit, ended).await.ok()
}

/// The next signal to pass on; never resolves without a sender.
async fn signal(signals: &mut Option<broadcast::Receiver<i32>>) -> i32 {
    while let Some(receiver) = signals {
        match receiver.recv().await {
            Ok(number) => return number,
            Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => *signals = None,
        }
    }
    std::future::pending().await
}

/// A task that can be awaited again after it has finished.
pub(super) struct Task<T>(Option<JoinHandle<T>>);

impl<T> Task<T> {
    pub(super) fn new(handle: JoinHandle<T>) -> Self {
        Self(Some(handle))
    }

    /// The result of the task; `None` if it was taken before, or if the task panicked.
    async fn finish(&mut self) -> Option<T> {
        let handle = self.0.as_mut()?;
        let result = handle.await;
        self.0 = None;
        result.ok()
    }

    /// Stops it and waits until it has stopped.
    async fn stop(&mut self) {
        if let Some(handle) = &self.0 {
            handle.abort();
        }
        self.finish().await;
    }
}
