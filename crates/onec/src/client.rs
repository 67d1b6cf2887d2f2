//! The main loop of the client: connect, register if its profile does, receive, work, lose the
//! socket, repeat.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::wire::{self, ReceivedFrame};
use super::{ClientOptions, ClientProfile, ClientRecord, Command, tools};

/// The time limit of a handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// Every third reconnect of a server channel opens a socket that sends nothing.
const PROBE_EVERY: u32 = 3;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A queued call, and the process that received it.
struct Work {
    process: u32,
    id: String,
    name: String,
    arguments: Value,
}

struct ClientLoop {
    options: ClientOptions,
    seen: Arc<Mutex<ClientRecord>>,
    tools: Value,
    /// The number of its restarts; also its pid.
    process: u32,
    /// Whether this process has registered.
    registered: bool,
    received: u32,
    /// Answers that it could not send.
    unsent: Vec<String>,
    work: UnboundedSender<Work>,
    probes: Vec<Socket>,
}

/// Why it no longer has a socket.
enum Loss {
    /// It will reconnect.
    Lost,
    /// It reconnects at once, as a server channel does.
    Renewed,
    /// It has exited.
    Ended,
}

pub(super) async fn live(
    options: ClientOptions,
    seen: Arc<Mutex<ClientRecord>>,
    mut orders: UnboundedReceiver<Command>,
) {
    let (work, inbox) = unbounded_channel();
    let (done, mut finished) = unbounded_channel();
    let pace = options.work;
    let tools = tools::definitions(options.profile);
    let (first, longest) = options.backoff;
    let mut life = ClientLoop {
        options,
        seen,
        tools,
        process: 1,
        registered: false,
        received: 0,
        unsent: Vec::new(),
        work,
        probes: Vec::new(),
    };
    let working = labour(pace, inbox, done);
    let living = async {
        let mut wait = first;
        loop {
            if let Some(socket) = life.connect().await {
                wait = first;
                match life.hold(socket, &mut orders, &mut finished).await {
                    Loss::Lost => {}
                    Loss::Renewed => continue,
                    Loss::Ended => return,
                }
            }
            sleep(wait).await;
            wait = (wait * 2).min(longest);
        }
    };
    tokio::select! {
        () = working => {}
        () = living => {}
    }
}

/// Runs one call at a time, in order of arrival, regardless of the state of the socket.
async fn labour(
    pace: Duration,
    mut inbox: UnboundedReceiver<Work>,
    done: UnboundedSender<(u32, String)>,
) {
    while let Some(Work { process, id, name, arguments }) = inbox.recv().await {
        let asked = arguments.get("Секунды").and_then(Value::as_u64).filter(|_| name == "timer");
        sleep(asked.map_or(pace, Duration::from_secs)).await;
        if done.send((process, wire::answer(&id, &name, &arguments))).is_err() {
            return;
        }
    }
}

impl ClientLoop {
    async fn connect(&mut self) -> Option<Socket> {
        let connecting = connect_async(self.options.url.as_str());
        let connected = timeout(HANDSHAKE, connecting).await.ok().and_then(Result::ok);
        let mut seen = self.seen.lock();
        let Some((socket, _)) = connected else {
            seen.failures += 1;
            return None;
        };
        seen.connects += 1;
        seen.connected = true;
        Some(socket)
    }

    async fn hold(
        &mut self,
        mut socket: Socket,
        orders: &mut UnboundedReceiver<Command>,
        finished: &mut UnboundedReceiver<(u32, String)>,
    ) -> Loss {
        let loss = self.talk(&mut socket, orders, finished).await.unwrap_or(Loss::Lost);
        self.seen.lock().connected = false;
        loss
    }

    /// Returns `None` when the socket is lost.
    async fn talk(
        &mut self,
        socket: &mut Socket,
        orders: &mut UnboundedReceiver<Command>,
        finished: &mut UnboundedReceiver<(u32, String)>,
    ) -> Option<Loss> {
        if !self.registered || self.options.profile != ClientProfile::Thin {
            self.registered = true;
            self.seen.lock().registers += 1;
            let register = wire::register(&self.options, self.process, &self.tools);
            say(socket, register).await?;
        }
        for answer in std::mem::take(&mut self.unsent) {
            self.reply(socket, answer).await?;
        }
        let renew = self.options.reconnect_every.map(|every| Instant::now() + every);
        loop {
            tokio::select! {
                received = socket.next() => match received {
                    Some(Ok(Message::Text(text))) => {
                        if self.hear(&text) {
                            return Some(Loss::Ended);
                        }
                    }
                    Some(Ok(Message::Close(frame))) => {
                        let code = frame.map_or(1005, |frame| frame.code.into());
                        self.seen.lock().close_code = Some(code);
                    }
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return None,
                },
                Some((process, answer)) = finished.recv() => {
                    if process == self.process {
                        self.reply(socket, answer).await?;
                    }
                }
                order = orders.recv() => match order? {
                    Command::Drop => return None,
                    Command::Bye { request } => {
                        say(socket, wire::bye(request)).await?;
                        // Waits until the peer closes.
                        while let Ok(Some(Ok(_))) = timeout(HANDSHAKE, socket.next()).await {}
                        return Some(Loss::Ended);
                    }
                    Command::Restart => {
                        self.process += 1;
                        self.registered = false;
                        self.unsent.clear();
                        return None;
                    }
                    Command::Tools(tools) => {
                        self.tools = tools;
                        say(socket, wire::tools_changed(&self.tools)).await?;
                    }
                    Command::Say(text) => say(socket, text).await?,
                },
                () = at(renew) => {
                    self.close(socket).await;
                    self.probe().await;
                    return Some(Loss::Renewed);
                }
            }
        }
    }

    /// Closes properly: frames that were sent before the peer received the close are still
    /// received, and answered on the next socket.
    async fn close(&mut self, socket: &mut Socket) {
        if socket.close(None).await.is_err() {
            return;
        }
        while let Ok(Some(Ok(message))) = timeout(HANDSHAKE, socket.next()).await {
            if let Message::Text(text) = message {
                self.hear(&text);
            }
        }
    }

    /// Handles a frame; returns whether to exit.
    fn hear(&mut self, text: &str) -> bool {
        let mut seen = self.seen.lock();
        match wire::hear(text) {
            ReceivedFrame::Call { id, name, arguments } => {
                self.received += 1;
                if self.options.lose_every.is_some_and(|every| self.received.is_multiple_of(every))
                {
                    seen.lost += 1;
                    return false;
                }
                seen.calls.push(name.clone());
                // The worker ends only with everything else.
                drop(self.work.send(Work { process: self.process, id, name, arguments }));
            }
            ReceivedFrame::Unreadable => seen.unreadable += 1,
            ReceivedFrame::Cancel => seen.cancels += 1,
            ReceivedFrame::Shutdown => seen.shutdown = true,
            ReceivedFrame::Answer(Some(error)) if self.options.profile == ClientProfile::Test => {
                seen.errors.push(error);
            }
            ReceivedFrame::Answer(_) | ReceivedFrame::Other => {}
        }
        // A thin client exits the whole application on request.
        seen.shutdown && self.options.profile == ClientProfile::Thin
    }

    async fn reply(&mut self, socket: &mut Socket, answer: String) -> Option<()> {
        if say(socket, answer.clone()).await.is_none() {
            self.unsent.push(answer);
            return None;
        }
        self.seen.lock().answers += 1;
        Some(())
    }

    /// A server channel sometimes opens a socket and sends nothing, to check whether the server is
    /// there.
    async fn probe(&mut self) {
        let connects = self.seen.lock().connects;
        if connects.is_multiple_of(PROBE_EVERY) {
            self.probes.clear();
            if let Some(socket) = self.connect().await {
                self.probes.push(socket);
            }
        }
    }
}

async fn say(socket: &mut Socket, text: String) -> Option<()> {
    socket.send(Message::text(text)).await.ok()
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
