//! A 1C client that is none: it dials in, publishes tools and misbehaves as those in the field do.
//! For tests, and for people without 1C who want to see sessions work (`toolgate demo onec`).
//!
//! Invariant: nothing of toolgate's own wire code is used, so that a mistake there cannot hide.
//!
//! 1. Plain `ws://`, no headers; a token can only stand in the path. The handshake has 5 s; after a
//!    loss it tries again for ever, at first after 0.5 s, then twice as long each time up to 30 s.
//! 2. A call whose id is no text, or that has a key which is no 1C identifier, is lost silently.
//! 3. A thin client looks at no answer and does not register again after a reconnect; what it
//!    has finished meanwhile it says on the new socket.
//! 4. A server channel drops its socket every so often and comes back with the same uid; now and
//!    then it opens a socket on which it says nothing.
//! 5. A queue inside it loses calls ([`ClientOptions::lose_every`]).
//!
//! It runs one call at a time, in order of arrival, and ignores `tool.cancel`, as real ones do.
//! Start at [`SimulatedClient::start`].

mod client;
#[cfg(test)]
mod tests;
mod tools;
mod wire;

use std::sync::Arc;
use std::time::Duration;

pub use self::tools::definitions;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// What kind of program it plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ClientProfile {
    /// A person's 1C window.
    Thin,
    /// A window that a test drives: the `ui_*` tools.
    Test,
    /// The background job of an infobase.
    Server,
}

/// How it plays.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Where it dials: `ws://HOST:PORT/sessions`, with `/<token>` if one is needed.
    pub url: String,
    /// Its `client_uid`.
    pub uid: String,
    /// Its `kind`.
    pub kind: String,
    /// Its `infobase_name`.
    pub base: String,
    /// Its `config_id`, if it sends one.
    pub config_id: Option<String>,
    /// What kind of program it is.
    pub profile: ClientProfile,
    /// How long after a loss it first tries again, and at most.
    pub backoff: (Duration, Duration),
    /// How often it drops its socket and comes back.
    pub reconnect_every: Option<Duration>,
    /// Every so manieth call is lost inside it.
    pub lose_every: Option<u32>,
    /// How long each call takes.
    pub work: Duration,
}

impl ClientOptions {
    /// A program of that profile as it is in the field.
    pub fn new(url: impl Into<String>, uid: &str, profile: ClientProfile, base: &str) -> Self {
        let kind = match profile {
            ClientProfile::Thin => "client",
            ClientProfile::Test => "test",
            ClientProfile::Server => "server",
        };
        Self {
            url: url.into(),
            uid: uid.to_owned(),
            kind: kind.to_owned(),
            base: base.to_owned(),
            config_id: None,
            profile,
            backoff: (Duration::from_millis(500), Duration::from_secs(30)),
            reconnect_every: (profile == ClientProfile::Server).then(|| Duration::from_mins(1)),
            lose_every: None,
            work: Duration::ZERO,
        }
    }
}

/// What has happened to it so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientRecord {
    /// Sockets that it opened.
    pub connects: u32,
    /// Times that nobody was there to connect to.
    pub failures: u32,
    /// Times that it said `session.register`.
    pub registers: u32,
    /// Whether it has a socket now.
    pub connected: bool,
    /// Names of the calls that it took up, in order.
    pub calls: Vec<String>,
    /// Calls that it answered.
    pub answers: u32,
    /// Calls that it lost: their keys or their id.
    pub unreadable: u32,
    /// Calls that it lost for no reason.
    pub lost: u32,
    /// Times that it was asked to cancel.
    pub cancels: u32,
    /// Whether it was asked to end.
    pub shutdown: bool,
    /// The code with which its last socket was closed by the other side.
    pub close_code: Option<u16>,
    /// Errors that it was sent and, if it is no thin client or server channel, has looked at.
    pub errors: Vec<Value>,
}

/// A running client; it ends when this is dropped.
#[derive(Debug)]
pub struct SimulatedClient {
    seen: Arc<Mutex<ClientRecord>>,
    orders: mpsc::UnboundedSender<Command>,
    task: JoinHandle<()>,
}

/// What a test can make it do.
#[derive(Debug)]
pub(crate) enum Command {
    /// Loses its socket without a word; comes back by itself.
    Drop,
    /// Says goodbye, as a request or as a notification, and ends.
    Bye { request: bool },
    /// Its process ends and is started again: it registers anew, and what it ran is lost.
    Restart,
    /// Publishes other tools.
    Tools(Value),
    /// Sends this text as it is.
    Say(String),
}

impl SimulatedClient {
    /// Starts it; it must be inside a tokio runtime.
    pub fn start(options: ClientOptions) -> Self {
        let seen = Arc::new(Mutex::new(ClientRecord::default()));
        let (orders, inbox) = mpsc::unbounded_channel();
        let task = tokio::spawn(client::live(options, Arc::clone(&seen), inbox));
        Self { seen, orders, task }
    }

    /// What has happened to it so far.
    pub fn seen(&self) -> ClientRecord {
        self.seen.lock().clone()
    }

    /// Loses its socket without a word; comes back by itself.
    pub fn drop_socket(&self) {
        self.order(Command::Drop);
    }

    /// Says goodbye, as a request or (as real ones do) as a notification, and ends.
    pub fn bye(&self, request: bool) {
        self.order(Command::Bye { request });
    }

    /// Its process ends and is started again.
    pub fn restart(&self) {
        self.order(Command::Restart);
    }

    /// Publishes other tools, an array as in `session.register`.
    pub fn change_tools(&self, tools: Value) {
        self.order(Command::Tools(tools));
    }

    /// Sends a frame as it is.
    pub fn say(&self, text: impl Into<String>) {
        self.order(Command::Say(text.into()));
    }

    /// Waits until it has ended: after a goodbye, or when it was asked to.
    pub async fn ended(mut self) -> ClientRecord {
        // It never panics; if it did, what it had seen is still worth looking at.
        if let Err(error) = (&mut self.task).await {
            self.seen.lock().errors.push(error.to_string().into());
        }
        self.seen()
    }

    fn order(&self, order: Command) {
        // One that has ended obeys no more.
        drop(self.orders.send(order));
    }
}

impl Drop for SimulatedClient {
    fn drop(&mut self) {
        self.task.abort();
    }
}
