//! Children: servers that talk over their standard input and output.
//!
//! [`ChildConnector`] starts one process per channel. Around each process stand four small tasks:
//! [`input`] writes its stdin, [`output`] reads its stdout, [`stderr`] logs what it says to people,
//! and [`keeper`] watches over its life and ends it. Start reading at [`ChildConnector`], then
//! `keeper`.
//!
//! Invariant: no shell. The command and its arguments go to the operating system as they are.
//! Invariant: of the gateway's own environment a child sees only what [`inheritable`] names.
//! Invariant: a child never outlives its channel: closing or dropping the channel ends the whole
//! process group, and the tracker given to the connector waits for that.
//! Invariant: the inbox of a channel hears `closed` exactly once, after the last message.
//!
//! Tested with real processes in `tests/upstream/child.rs`.

mod input;
mod keeper;
mod output;
mod start;
mod stderr;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_gateway::channel::{
    BoxFuture, Channel, Connector, Inbox, LastLook, Outbound, SendError,
};
use toolgate_mcp::write;

use input::Line;
pub use start::inheritable;

/// How a child is started and how much it may say at once.
#[derive(Debug, Clone)]
pub struct ChildSpec {
    /// The server's name, for logs and messages.
    pub server: String,
    /// The program, a path or a name looked up in the child's `PATH`.
    pub command: String,
    /// Its arguments, one by one.
    pub args: Vec<String>,
    /// Variables set on top of the inherited ones.
    pub env: Vec<(String, String)>,
    /// Values among them, and among the arguments, that no log line shows.
    pub secrets: Vec<String>,
    /// The folder it starts in; the gateway's own if none.
    pub cwd: Option<PathBuf>,
    /// The longest line (one message) that it may print; more ends the channel.
    pub max_line: usize,
    /// How many messages may wait until it reads them.
    pub queue: usize,
}

impl ChildSpec {
    /// A spec with the default limits and nothing but a command.
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

/// Starts a process for every channel it makes.
#[derive(Debug)]
pub struct ChildConnector {
    spec: ChildSpec,
    environment: Vec<(String, String)>,
    secrets: Arc<stderr::Secrets>,
    tracker: TaskTracker,
}

impl ChildConnector {
    /// `inherited` is the gateway's environment, of which only [`inheritable`] variables are
    /// passed on. Every task of a child runs on `tracker`: closing it and waiting for it at
    /// shutdown waits until all children are gone.
    pub fn new(
        spec: ChildSpec,
        inherited: impl IntoIterator<Item = (String, String)>,
        tracker: TaskTracker,
    ) -> Self {
        let environment = start::environment(inherited, &spec.env);
        let secrets = Arc::new(stderr::Secrets::new(&spec.secrets));
        Self { spec, environment, secrets, tracker }
    }

    fn start(&self, inbox: Arc<dyn Inbox>) -> Result<Arc<dyn Channel>, SendError> {
        let started = start::start(&self.spec, &self.environment).map_err(SendError::NotSent)?;
        let ending = CancellationToken::new();
        let ended = CancellationToken::new();
        let (queue, waiting) = mpsc::channel(self.spec.queue.max(1));
        let server: Arc<str> = self.spec.server.as_str().into();
        let spoken = stderr::Spoken::default();

        let input = input::write(waiting, started.stdin, ending.clone());
        let secrets = Arc::clone(&self.secrets);
        let strays = output::Strays::new(server.clone(), Arc::clone(&secrets));
        let output = output::read(strays, started.stdout, self.spec.max_line, inbox.clone());
        let stderr = stderr::log(server.clone(), started.stderr, spoken.clone(), secrets);
        let keeper = keeper::Keeper {
            group: started.group,
            input: keeper::Task::new(self.tracker.spawn(input)),
            output: keeper::Task::new(self.tracker.spawn(output)),
            stderr: keeper::Task::new(self.tracker.spawn(stderr)),
            spoken,
            inbox,
            ending: ending.clone(),
            ended: ended.clone(),
        };
        self.tracker.spawn(keeper.run());
        Ok(Arc::new(ChildChannel { server, queue, ending, ended }))
    }
}

impl Connector for ChildConnector {
    fn connect(&self, inbox: Arc<dyn Inbox>) -> BoxFuture<'_, Result<Arc<dyn Channel>, SendError>> {
        Box::pin(async move { self.start(inbox) })
    }
}

/// One running child.
struct ChildChannel {
    server: Arc<str>,
    queue: mpsc::Sender<Line>,
    /// Cancelled when somebody wants the child to end.
    ending: CancellationToken,
    /// Cancelled when the child is gone, reaped and reported.
    ended: CancellationToken,
}

impl ChildChannel {
    /// Puts a message into the queue. With a last look it waits until the message is about to be
    /// written.
    async fn pass(&self, message: Outbound) -> Result<(), SendError> {
        let (body, look) = (message.body().clone(), message.last_look().cloned());
        let Some(look) = look else { return self.enqueue(body, None) };
        let (tell, allowed) = oneshot::channel();
        self.enqueue(body, Some((look, tell)))?;
        match allowed.await {
            Ok(false) => Err(SendError::Withheld),
            // If the child has ended before, the inbox hears why.
            Ok(true) | Err(_) => Ok(()),
        }
    }

    fn enqueue(
        &self,
        body: Bytes,
        look: Option<(LastLook, oneshot::Sender<bool>)>,
    ) -> Result<(), SendError> {
        // INVARIANT: one message is one line. Line breaks of an agent that writes pretty JSON are
        // folded; in JSON they cannot stand inside a string, so nothing is lost.
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
        // The keeper does the rest: it lives on the tracker, not on this value.
        self.ending.cancel();
    }
}
