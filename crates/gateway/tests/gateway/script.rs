//! Scripted servers: the test receives their messages and answers for them.
//!
//! A [`Peer`] is one server, a [`Line`] one channel to it, a [`Sent`] one message on it.

mod wire;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolgate_gateway::RelayWriter;
use toolgate_gateway::channel::{
    BoxFuture, Channel, Connector, Heads, Inbox, Progress, RefusedStatus, SendError, StatusClass,
};
use toolgate_json::{peek, text};
use toolgate_mcp::method;

use self::wire::{Handle, Wire};

/// A server's rejection with this HTTP status, classified as the edge does.
pub(crate) fn refusal(number: u16, body: impl Into<Bytes>) -> SendError {
    let class = match number {
        400 => StatusClass::BadRequest,
        401 | 403 => StatusClass::Credentials,
        404 | 405 => StatusClass::NoEndpoint,
        421 => StatusClass::WrongHost,
        300..400 => StatusClass::Redirect,
        402..500 => StatusClass::OtherClientError,
        _ => StatusClass::ServerError,
    };
    SendError::Refused { status: RefusedStatus { number, class }, body: body.into() }
}

/// Longer than anything the gateway waits for; the clock is virtual.
const FOR_EVER: Duration = Duration::from_hours(24 * 365);

/// What kind of channel a server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A message is sent when it is queued; everything comes back over one pipe.
    Child,
    /// A message is sent when its exchange is over, and has an inbox of its own.
    Http,
    /// A message is sent when the server has accepted it; everything comes back over one stream,
    /// whose end the gateway is not told of when it closes the channel itself.
    Sse,
}

/// How the next attempt to connect goes.
pub(crate) enum Connect {
    Refuse(SendError),
    Hang,
    /// Goes on when told.
    Held(oneshot::Receiver<()>),
}

/// A server that does as its test says.
pub(crate) struct Peer {
    script: Arc<Script>,
    lines: mpsc::UnboundedReceiver<Line>,
}

pub(crate) struct Script {
    kind: Kind,
    /// The result with which `initialize` is answered at once; without one that is the test's.
    welcome: Mutex<Option<String>>,
    /// The result with which `server/discover` is answered; without one it is unknown.
    discover: Mutex<Option<String>>,
    connects: Mutex<VecDeque<Connect>>,
    tried: AtomicUsize,
    lines: mpsc::UnboundedSender<Line>,
}

/// One channel, as the server sees it.
pub(crate) struct Line {
    sent: mpsc::UnboundedReceiver<Sent>,
    wire: Arc<Wire>,
}

/// A message that the gateway sent.
pub(crate) struct Sent {
    pub(crate) body: String,
    pub(crate) heads: Heads,
    wire: Arc<Wire>,
    exchange: Arc<dyn Inbox>,
    verdict: Mutex<Option<oneshot::Sender<Result<(), SendError>>>>,
}

/// What a scripted server says to `initialize` unless told otherwise.
pub(crate) const WELCOME: &str =
    r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#;

impl Peer {
    /// A server that answers `initialize` by itself.
    pub(crate) fn new(kind: Kind) -> Self {
        Self::with_welcome(kind, Some(WELCOME))
    }

    /// A server whose handshake is the test's too.
    pub(crate) fn silent(kind: Kind) -> Self {
        Self::with_welcome(kind, None)
    }

    pub(crate) fn with_welcome(kind: Kind, welcome: Option<&str>) -> Self {
        let (lines, taken) = mpsc::unbounded_channel();
        let script = Script {
            kind,
            welcome: Mutex::new(welcome.map(str::to_owned)),
            discover: Mutex::default(),
            connects: Mutex::default(),
            tried: AtomicUsize::new(0),
            lines,
        };
        Self { script: Arc::new(script), lines: taken }
    }

    /// A server of protocol 2026-07-28 that says this to `server/discover`, and nothing else by
    /// itself.
    pub(crate) fn modern(kind: Kind, discover: &str) -> Self {
        let peer = Self::with_welcome(kind, None);
        peer.set_discover(Some(discover));
        peer
    }

    /// From the next connection on.
    pub(crate) fn set_discover(&self, discover: Option<&str>) {
        *self.script.discover.lock() = discover.map(str::to_owned);
    }

    pub(crate) fn connector(&self) -> Arc<Script> {
        Arc::clone(&self.script)
    }

    /// Decides on the next attempt to connect that is not decided on yet.
    pub(crate) fn next_connect(&self, plan: Connect) {
        self.script.plan(plan);
    }

    /// From the next connection on.
    pub(crate) fn set_welcome(&self, welcome: Option<&str>) {
        *self.script.welcome.lock() = welcome.map(str::to_owned);
    }

    /// How often the gateway has tried to connect.
    pub(crate) fn tried(&self) -> usize {
        self.script.tried()
    }

    /// The next channel that will be made; none if the gateway is gone.
    pub(crate) async fn next_line(&mut self) -> Option<Line> {
        self.lines.recv().await
    }

    /// The next channel that was made, if there is one.
    pub(crate) fn try_line(&mut self) -> Option<Line> {
        self.lines.try_recv().ok()
    }

    /// The next channel that was made.
    pub(crate) async fn line(&mut self) -> Line {
        timeout(FOR_EVER, self.lines.recv()).await.expect("nobody connected").unwrap()
    }
}

impl Script {
    /// How often the gateway has tried to connect.
    pub(crate) fn tried(&self) -> usize {
        self.tried.load(Ordering::SeqCst)
    }

    /// Decides on the next attempt to connect that is not decided on yet.
    pub(crate) fn plan(&self, plan: Connect) {
        self.connects.lock().push_back(plan);
    }
}

impl Connector for Script {
    fn connect(&self, inbox: Arc<dyn Inbox>) -> BoxFuture<'_, Result<Arc<dyn Channel>, SendError>> {
        Box::pin(async move {
            self.tried.fetch_add(1, Ordering::SeqCst);
            let plan = self.connects.lock().pop_front();
            match plan {
                Some(Connect::Refuse(error)) => return Err(error),
                Some(Connect::Hang) => std::future::pending().await,
                Some(Connect::Held(go)) => go.await.unwrap(),
                None => {}
            }
            let (sent, received) = mpsc::unbounded_channel();
            let wire = Arc::new(Wire {
                kind: self.kind,
                welcome: self.welcome.lock().clone(),
                discover: self.discover.lock().clone(),
                inbox,
                sent,
                log: Mutex::default(),
                refusals: Mutex::default(),
                established: Mutex::default(),
                listens: AtomicUsize::new(0),
                dead: AtomicBool::new(false),
                closing: CancellationToken::new(),
            });
            // A test that is over takes no more lines.
            drop(self.lines.send(Line { sent: received, wire: Arc::clone(&wire) }));
            Ok(Arc::new(Handle(wire)) as Arc<dyn Channel>)
        })
    }
}

impl Line {
    /// The next message that is not of a handshake which the server answers by itself.
    pub(crate) async fn next(&mut self) -> Sent {
        timeout(FOR_EVER, self.sent.recv()).await.expect("nothing was sent").unwrap()
    }

    /// The first message of a handshake; a probe before it is refused.
    pub(crate) async fn hello(&mut self) -> Sent {
        let sent = self.next().await;
        if sent.method() != method::DISCOVER {
            return sent;
        }
        sent.say_error(-32601, "no such method");
        self.next().await
    }

    /// The next message that will come; none if the channel is gone.
    pub(crate) async fn next_or_end(&mut self) -> Option<Sent> {
        self.sent.recv().await
    }

    /// The next message, if one is there.
    pub(crate) fn try_next(&mut self) -> Option<Sent> {
        self.sent.try_recv().ok()
    }

    /// Everything that has been sent and not been looked at, once nothing moves any more.
    pub(crate) async fn rest(&mut self) -> Vec<String> {
        settle().await;
        std::iter::from_fn(|| self.try_next()).map(|sent| sent.body).collect()
    }

    /// Everything that was ever sent.
    pub(crate) fn log(&self) -> Vec<String> {
        self.wire.log.lock().clone()
    }

    /// Says something that belongs to no exchange.
    pub(crate) fn say(&self, body: &str) -> Progress {
        self.wire.inbox.message(Bytes::copy_from_slice(body.as_bytes()))
    }

    /// Refuses the next message that comes, whatever it is.
    pub(crate) fn refuse_next(&self, error: SendError) {
        self.wire.refusals.lock().push_back(error);
    }

    /// The channel breaks off.
    pub(crate) fn break_off(&self, why: &str) {
        self.wire.die(why);
    }

    /// The protocol version that the gateway was told to speak.
    pub(crate) fn established(&self) -> Option<String> {
        self.wire.established.lock().clone()
    }

    /// How often the gateway asked for the server's own stream.
    pub(crate) fn listens(&self) -> usize {
        self.wire.listens.load(Ordering::SeqCst)
    }

    /// Whether the gateway has closed it.
    pub(crate) fn closed(&self) -> bool {
        self.wire.closing.is_cancelled()
    }

    /// Waits until the gateway closes it.
    pub(crate) async fn until_closed(&self) {
        timeout(FOR_EVER, self.wire.closing.cancelled()).await.expect("it was never closed");
    }
}

impl Sent {
    /// The raw value at these keys.
    pub(crate) fn part(&self, path: &[&str]) -> Option<&str> {
        peek(&self.body, path).unwrap()
    }

    pub(crate) fn id(&self) -> &str {
        self.part(&["id"]).expect("a request")
    }

    pub(crate) fn method(&self) -> String {
        text(self.part(&["method"]).expect("no answer")).unwrap().into_owned()
    }

    /// Speaks to whoever sent it: inside the exchange where there are exchanges.
    pub(crate) fn say(&self, body: &str) -> Progress {
        let bytes = Bytes::copy_from_slice(body.as_bytes());
        match self.wire.kind {
            Kind::Child | Kind::Sse => self.wire.inbox.message(bytes),
            Kind::Http => {
                let progress = self.exchange.message(bytes);
                if progress == Progress::Answered {
                    self.end(Ok(()));
                }
                progress
            }
        }
    }

    /// Begins an answer of so many bytes; where it goes on to, if it does.
    pub(crate) fn begins(&self, beginning: &str, size: usize) -> Option<RelayWriter> {
        self.exchange.begins(&Bytes::copy_from_slice(beginning.as_bytes()), size)
    }

    /// An answer that went on while it came is here, as the edge does it.
    pub(crate) fn passed(&self, relay_writer: RelayWriter) -> Progress {
        let (outline, held) = relay_writer.finish().expect("an outline");
        let progress = self.exchange.message(outline);
        if progress == Progress::Answered {
            held.release();
            self.end(Ok(()));
        }
        progress
    }

    pub(crate) fn answer(&self, result: &str) {
        self.say(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, self.id()));
    }

    pub(crate) fn say_error(&self, code: i32, message: &str) {
        self.say(&format!(
            r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":{code},"message":"{message}"}}}}"#,
            self.id()
        ));
    }

    /// The value of a header.
    pub(crate) fn head(&self, name: &str) -> Option<&str> {
        self.heads.iter().find(|(head, _)| head == name).map(|(_, value)| value.as_str())
    }

    /// Whether nobody waits for the exchange any more.
    pub(crate) fn hung_up(&self) -> bool {
        self.verdict.lock().as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    /// Ends the exchange without an answer.
    pub(crate) fn refuse(&self, error: SendError) {
        self.end(Err(error));
    }

    pub(crate) fn pause(&self, retry: Option<Duration>) {
        self.exchange.paused(retry);
    }

    fn end(&self, verdict: Result<(), SendError>) {
        if let Some(tell) = self.verdict.lock().take() {
            // Whoever sent it may have gone.
            drop(tell.send(verdict));
        }
    }
}

/// Waits until nothing moves any more: on a paused clock this ends when every task waits.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}
