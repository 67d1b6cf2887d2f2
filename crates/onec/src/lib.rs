//! A simulated 1C client: it dials in, publishes tools and misbehaves like real ones. For tests,
//! and for people without 1C who want to try sessions (`toolgate demo onec`).
//!
//! Invariant: it uses none of toolgate's own wire code, so that a bug there cannot hide.
//!
//! 1. Plain `ws://`, no headers; a token can only be in the path. The handshake has 5 s; after a
//!    loss it retries without end, first after 0.5 s, then doubling up to 30 s.
//! 2. A call whose id is not a string, or with a key that is not a 1C identifier, is dropped
//!    silently.
//! 3. A thin client reads no responses and does not register again after a reconnect; it sends
//!    finished answers on the new socket.
//! 4. A server channel drops its socket regularly and reconnects with the same uid; sometimes it
//!    opens a socket on which it sends nothing.
//! 5. Its internal queue loses calls ([`ClientOptions::lose_every`]).
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

/// The kind of program that is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ClientProfile {
    /// A user's 1C window.
    Thin,
    /// A window driven by a test: the `ui_*` tools.
    Test,
    /// The background job of an infobase.
    Server,
}

/// The options of a simulated client.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The URL: `ws://HOST:PORT/sessions`, with `/<token>` if one is required.
    pub url: String,
    /// Its `client_uid`.
    pub uid: String,
    /// Its `kind`.
    pub kind: String,
    /// Its `infobase_name`.
    pub base: String,
    /// Its `config_id`, if it sends one.
    pub config_id: Option<String>,
    /// The kind of program.
    pub profile: ClientProfile,
    /// The first and the maximum delay before a reconnect.
    pub backoff: (Duration, Duration),
    /// How often it drops its socket and reconnects.
    pub reconnect_every: Option<Duration>,
    /// Every n-th call is lost.
    pub lose_every: Option<u32>,
    /// How long each call takes.
    pub work: Duration,
}

impl ClientOptions {
    /// A realistic program of that profile.
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

/// What has happened to the client so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientRecord {
    /// Opened sockets.
    pub connects: u32,
    /// Failed connection attempts.
    pub failures: u32,
    /// Sent `session.register` requests.
    pub registers: u32,
    /// Whether it has a socket now.
    pub connected: bool,
    /// Names of the calls that it started, in order.
    pub calls: Vec<String>,
    /// Calls that it answered.
    pub answers: u32,
    /// Calls dropped because of their keys or id.
    pub unreadable: u32,
    /// Calls lost by the internal queue.
    pub lost: u32,
    /// Received cancellations.
    pub cancels: u32,
    /// Whether it was asked to exit.
    pub shutdown: bool,
    /// The close code of its last socket, if the peer closed it.
    pub close_code: Option<u16>,
    /// Received errors that its profile reads.
    pub errors: Vec<Value>,
}

/// A running client; it ends when this is dropped.
#[derive(Debug)]
pub struct SimulatedClient {
    seen: Arc<Mutex<ClientRecord>>,
    orders: mpsc::UnboundedSender<Command>,
    task: JoinHandle<()>,
}

/// A command of a test.
#[derive(Debug)]
pub(crate) enum Command {
    /// Drop the socket without a close; it reconnects on its own.
    Drop,
    /// Send `session.bye`, as a request or as a notification, and exit.
    Bye { request: bool },
    /// Restart the process: it registers again, and running calls are lost.
    Restart,
    /// Publish other tools.
    Tools(Value),
    /// Send this text unchanged.
    Say(String),
}

impl SimulatedClient {
    /// Starts it; requires a tokio runtime.
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

    /// Drops its socket without a close; it reconnects on its own.
    pub fn drop_socket(&self) {
        self.order(Command::Drop);
    }

    /// Sends `session.bye`, as a request or (as real ones do) as a notification, and exits.
    pub fn bye(&self, request: bool) {
        self.order(Command::Bye { request });
    }

    /// Restarts its process.
    pub fn restart(&self) {
        self.order(Command::Restart);
    }

    /// Publishes other tools, an array as in `session.register`.
    pub fn change_tools(&self, tools: Value) {
        self.order(Command::Tools(tools));
    }

    /// Sends a frame unchanged.
    pub fn say(&self, text: impl Into<String>) {
        self.order(Command::Say(text.into()));
    }

    /// Waits until it has exited: after a bye, or when it was asked to.
    pub async fn ended(mut self) -> ClientRecord {
        // It never panics; if it did, the record would still be useful.
        if let Err(error) = (&mut self.task).await {
            self.seen.lock().errors.push(error.to_string().into());
        }
        self.seen()
    }

    fn order(&self, order: Command) {
        // A client that has exited ignores commands.
        drop(self.orders.send(order));
    }
}

impl Drop for SimulatedClient {
    fn drop(&mut self) {
        self.task.abort();
    }
}
