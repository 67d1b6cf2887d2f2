//! Children: servers that communicate over standard input and output.
//!
//! [`ChildConnector`] starts one process per channel. Four small tasks serve each process:
//! [`input`] writes its stdin, [`output`] reads its stdout, [`stderr`] logs its stderr, and
//! [`supervisor`] waits for its exit and ends it. Start reading at [`ChildConnector`], then
//! `supervisor`.
//!
//! Invariant: no shell. The command and its arguments are passed to the operating system unchanged.
//! Invariant: of the gateway's own environment a child sees only what [`inheritable`] names.
//! Invariant: a child never outlives its channel: closing or dropping the channel ends the whole
//! process group, and the tracker given to the connector waits for that.
//! Invariant: the inbox of a channel receives `closed` exactly once, after the last message.
//!
//! Tested with real processes in `tests/upstream/child.rs`.

mod ahead;
mod input;
mod output;
mod placeholders;
mod start;
mod stderr;
mod supervisor;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_gateway::channel::{
    BoxFuture, Channel, Connector, FinalCheck, Inbox, Outbound, SendError,
};
use toolgate_gateway::{LogTail, ServerMetrics};
use toolgate_mcp::write;

use ahead::{Ahead, LaterInbox};
use input::Line;
pub use placeholders::has_placeholder;
pub use start::inheritable;
pub use watch::{ChildEnd, ChildWatch};

/// How a child is started, and its limits.
#[derive(Debug, Clone)]
pub struct ChildSpec {
    /// The server's name, for logs and messages.
    pub server: String,
    /// The program, a path or a name looked up in the child's `PATH`.
    pub command: String,
    /// Its arguments, one by one. In them, in `env` and in `cwd`, `{grant}` and `{instance}` are
    /// replaced for each child.
    pub args: Vec<String>,
    /// Variables set on top of the inherited ones.
    pub env: Vec<(String, String)>,
    /// Values among them, and among the arguments, that must not appear in the log.
    pub secrets: Vec<String>,
    /// Its working directory; that of the gateway if unset.
    pub cwd: Option<PathBuf>,
    /// The longest line (one message) that it may print; more ends the channel.
    pub max_line: usize,
    /// How many messages may wait until it reads them.
    pub queue: usize,
}

impl ChildSpec {
    /// A spec with default limits and only a command.
    pub fn new(server: impl Into<String>, command: impl Into<String>) -> Self {
        Self {
            server: server.into(),
            command: command.into(),
            args: Vec::new(),
            env: Vec::new(),
            secrets: Vec::new(),
            cwd: None,
            max_line: 64 * 1024 * 1024,
            queue: 256,
        }
    }
}

/// Makes the value of `{instance}`, which no other child has.
pub type InstanceIds = Box<dyn Fn() -> String + Send + Sync>;

/// Starts a process for every channel it makes.
pub struct ChildConnector {
    spec: ChildSpec,
    inherited: Vec<(String, String)>,
    ids: InstanceIds,
    tracker: TaskTracker,
    metrics: Option<ServerMetrics>,
    watch: Option<ChildWatch>,
    log_tail: Arc<LogTail>,
    /// Started, but not connected to yet.
    ahead: Mutex<Option<Ahead>>,
}

impl ChildConnector {
    /// `inherited` is the gateway's environment, of which only [`inheritable`] variables are passed
    /// on. All tasks of children run on `tracker`: closing it and waiting for it at shutdown waits
    /// until all children are gone.
    pub fn new(
        spec: ChildSpec,
        inherited: impl IntoIterator<Item = (String, String)>,
        ids: InstanceIds,
        tracker: TaskTracker,
    ) -> Self {
        let inherited = inherited.into_iter().collect();
        let (metrics, watch, log_tail) = (None, None, Arc::default());
        let ahead = Mutex::default();
        Self { spec, inherited, ids, tracker, metrics, watch, log_tail, ahead }
    }

    /// Counts running children in `metrics`.
    #[must_use]
    pub fn counted_by(self, metrics: ServerMetrics) -> Self {
        Self { metrics: Some(metrics), ..self }
    }

    /// Reports the end of children to `watch`, and sends them its signals.
    #[must_use]
    pub fn watched_by(self, watch: ChildWatch) -> Self {
        Self { watch: Some(watch), ..self }
    }

    fn take_or_start(
        &self,
        inbox: Arc<dyn Inbox>,
        grant: &str,
    ) -> Result<Arc<dyn Channel>, SendError> {
        match self.ahead.lock().take() {
            Some(ahead) => Ok(ahead.connect(inbox)),
            None => self.start(inbox, grant),
        }
    }

    fn start(&self, inbox: Arc<dyn Inbox>, grant: &str) -> Result<Arc<dyn Channel>, SendError> {
        let filled = placeholders::are_in(&self.spec)
            .then(|| placeholders::fill(&self.spec, grant, &(self.ids)()));
        let spec = filled.as_ref().unwrap_or(&self.spec);
        if filled.is_some() && spec.cwd != self.spec.cwd {
            start::create_folder(spec).map_err(|error| SendError::NotSent(error.to_string()))?;
        }
        let environment = start::environment(self.inherited.iter().cloned(), &spec.env);
        let started = start::start(spec, &environment).map_err(|error| {
            if let Some(watch) = &self.watch {
                watch.ended(ChildEnd::NotStarted(error.exit_code()));
            }
            SendError::NotSent(error.to_string())
        })?;
        let ending = CancellationToken::new();
        let ended = CancellationToken::new();
        let (queue, waiting) = mpsc::channel(self.spec.queue.max(1));
        let server: Arc<str> = self.spec.server.as_str().into();
        let stderr_written = stderr::StderrWritten::default();

        let input = input::write(waiting, started.stdin, ending.clone());
        let secrets = Arc::new(stderr::Secrets::new(&spec.secrets));
        let stray_lines = output::StrayLines::new(server.clone(), Arc::clone(&secrets));
        let output = output::read(stray_lines, started.stdout, self.spec.max_line, inbox.clone());
        let target = stderr::StderrTarget {
            server: server.clone(),
            written: stderr_written.clone(),
            tail: Arc::clone(&self.log_tail),
            secrets,
        };
        let stderr = stderr::log(target, started.stderr);
        let supervisor = supervisor::Supervisor {
            group: started.group,
            input: supervisor::Task::new(self.tracker.spawn(input)),
            output: supervisor::Task::new(self.tracker.spawn(output)),
            stderr: supervisor::Task::new(self.tracker.spawn(stderr)),
            stderr_written,
            inbox,
            ending: ending.clone(),
            ended: ended.clone(),
            signals: self.watch.as_ref().map(ChildWatch::signals),
            watch: self.watch.clone(),
        };
        let running = self.metrics.as_ref().map(ServerMetrics::child_started);
        self.tracker.spawn(async move {
            let _running = running;
            supervisor.run().await;
        });
        Ok(Arc::new(ChildChannel { server, queue, ending, ended }))
    }
}

impl Connector for ChildConnector {
    fn connect(&self, inbox: Arc<dyn Inbox>) -> BoxFuture<'_, Result<Arc<dyn Channel>, SendError>> {
        Box::pin(async move { self.take_or_start(inbox, "") })
    }

    fn connect_for<'a>(
        &'a self,
        inbox: Arc<dyn Inbox>,
        grant: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn Channel>, SendError>> {
        Box::pin(async move { self.take_or_start(inbox, grant) })
    }

    fn start_ahead(&self, grant: &str) {
        let inbox = Arc::new(LaterInbox::default());
        match self.start(Arc::clone(&inbox) as Arc<dyn Inbox>, grant) {
            Ok(channel) => *self.ahead.lock() = Some(Ahead { channel, inbox }),
            // The first connection tries again, and tells the agent.
            Err(error) => tracing::error!("{error}"),
        }
    }

    fn end_ahead(&self) -> BoxFuture<'_, ()> {
        let ahead = self.ahead.lock().take();
        Box::pin(async move {
            if let Some(ahead) = ahead {
                ahead.channel.close().await;
            }
        })
    }

    fn log_tail(&self) -> Vec<String> {
        self.log_tail.lines()
    }
}

/// One running child.
struct ChildChannel {
    server: Arc<str>,
    queue: mpsc::Sender<Line>,
    /// Cancelled to end the child.
    ending: CancellationToken,
    /// Cancelled when the child is gone, reaped and reported.
    ended: CancellationToken,
}

impl ChildChannel {
    /// Queues a message. With a last look it waits until the message is about to be written.
    async fn pass(&self, message: Outbound) -> Result<(), SendError> {
        let (body, look) = (message.body().clone(), message.final_check().cloned());
        let Some(look) = look else { return self.enqueue(body, None) };
        let (report, allowed) = oneshot::channel();
        self.enqueue(body, Some((look, report)))?;
        match allowed.await {
            Ok(false) => Err(SendError::NoLongerAllowed),
            // If the child has exited before, the inbox receives the reason.
            Ok(true) | Err(_) => Ok(()),
        }
    }

    fn enqueue(
        &self,
        body: Bytes,
        look: Option<(FinalCheck, oneshot::Sender<bool>)>,
    ) -> Result<(), SendError> {
        // INVARIANT: one message is one line. Line breaks of pretty-printed JSON are removed; JSON
        // strings cannot contain them, so nothing is lost.
        let body = write::compact_bytes(body);
        if self.ending.is_cancelled() {
            return Err(self.gone());
        }
        self.queue.try_send(Line { body, look }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => SendError::NotSent(format!(
                "`{}` does not read its input: {} messages are waiting for it already",
                self.server,
                self.queue.max_capacity()
            )),
            mpsc::error::TrySendError::Closed(_) => self.gone(),
        })
    }

    fn gone(&self) -> SendError {
        SendError::NotSent(format!("the process of `{}` has ended", self.server))
    }
}

impl Channel for ChildChannel {
    fn send(
        &self,
        message: Outbound,
        _exchange: Arc<dyn Inbox>,
    ) -> BoxFuture<'_, Result<(), SendError>> {
        Box::pin(self.pass(message))
    }

    fn established(&self, _version: &str) {}

    fn listen(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.ending.cancel();
        Box::pin(self.ended.cancelled())
    }
}

impl Drop for ChildChannel {
    fn drop(&mut self) {
        // The supervisor does the rest: it runs on the tracker, independently of this value.
        self.ending.cancel();
    }
}
