//! One WebSocket: what comes in goes to the switchboard, what it orders goes out.
//!
//! Invariant: reading and writing do not wait for each other, so two sides that both have much to
//! say cannot block each other.
//! Invariant: however this ends, the switchboard is told.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use toolgate_session::{Input, SocketId, Token, What};

use super::pace::Pace;
use super::switchboard::Switchboard;

type Socket = WebSocketStream<TcpStream>;

/// How many frames may wait to be sent on one socket.
pub(super) const OUTBOUND: usize = 64;
/// How long a frame may take to be sent.
const WRITE: Duration = Duration::from_secs(30);
/// How long the other side may take to answer a close.
const FAREWELL: Duration = Duration::from_secs(2);
/// What a socket that nothing comes on holds in memory.
const READ_BUFFER: usize = 2 * 1024;

const TOO_LARGE: (u16, &str) = (1009, "the frame is larger than the limit");
pub(super) const NO_TOKEN: (u16, &str) = (1008, "no valid token in the path");

/// Something to do on a socket.
#[derive(Debug)]
pub(super) enum Order {
    Text(Bytes),
    Ping,
    Close(u16, &'static str),
    /// Close, and do not wait for whoever is at the other end.
    Drop(u16, &'static str),
}

/// Small buffers: a thousand sessions are mostly silent.
pub(super) fn config(max_frame: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        .max_message_size(Some(max_frame))
        .max_frame_size(Some(max_frame))
}

/// Closes a socket that may not come in.
pub(super) async fn turn_away(mut socket: Socket) {
    let (code, reason) = NO_TOKEN;
    if timeout(FAREWELL, socket.send(close(code, reason))).await.is_ok() {
        // Until the other side has heard it, and not for long.
        let rest = async { while let Some(Ok(_)) = socket.next().await {} };
        if timeout(FAREWELL, rest).await.is_err() {
            tracing::debug!("a socket without a token did not close in time");
        }
    }
}

/// Serves a socket to its end.
pub(super) async fn serve(board: Arc<Switchboard>, socket: Socket, token: Arc<Token>) {
    let (orders, inbox) = mpsc::channel(OUTBOUND);
    let open = Open { id: board.open(orders, token), board };
    let (sink, stream) = socket.split();
    tokio::select! {
        () = write(sink, inbox) => {}
        () = read(&open, stream) => {}
    }
}

/// A socket that the switchboard knows of.
struct Open {
    id: SocketId,
    board: Arc<Switchboard>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.board.close(self.id);
    }
}

async fn read(open: &Open, mut stream: SplitStream<Socket>) {
    let (board, socket) = (&open.board, open.id);
    let mut pace = Pace::new(Instant::now());
    let mut warned = false;
    while let Some(message) = stream.next().await {
        let bytes = match message {
            Ok(Message::Text(text)) => {
                if board.hear(Input::Frame { socket, text: &text }) {
                    continue;
                }
                text.len()
            }
            Ok(Message::Close(_)) => {
                // Nothing is to be sent on it any more, from now on and not only when it is gone.
                board.close(socket);
                continue;
            }
            Ok(message) => {
                board.hear(Input::Alive { socket });
                message.len()
            }
            Err(Error::Capacity(error)) => {
                board.tell(What::FrameTooLarge, Some(socket), error.to_string());
                board.order(socket, Order::Close(TOO_LARGE.0, TOO_LARGE.1));
                // What still comes is no frame any more; the writer says goodbye.
                return std::future::pending().await;
            }
            Err(error) => {
                tracing::debug!(%error, "a session's socket has ended");
                return;
            }
        };
        if let Some(wait) = pace.pay(bytes, Instant::now()) {
            if !std::mem::replace(&mut warned, true) {
                let what = "says more than it is asked, and is heard more slowly".to_owned();
                board.tell(What::Flooding, Some(socket), what);
            }
            sleep(wait).await;
        }
    }
}

async fn write(mut sink: SplitSink<Socket, Message>, mut inbox: mpsc::Receiver<Order>) {
    while let Some(order) = inbox.recv().await {
        let wait = !matches!(order, Order::Drop(..));
        let (message, last) = match order {
            Order::Text(frame) => match Utf8Bytes::try_from(frame) {
                Ok(text) => (Message::Text(text), false),
                // Cannot be: the machine writes JSON.
                Err(_) => continue,
            },
            Order::Ping => (Message::Ping(Bytes::new()), false),
            Order::Close(code, reason) | Order::Drop(code, reason) => (close(code, reason), true),
        };
        let sent = timeout(WRITE, sink.send(message)).await;
        if last && wait {
            return sleep(FAREWELL).await;
        }
        if last || !matches!(sent, Ok(Ok(()))) {
            return;
        }
    }
}

fn close(code: u16, reason: &'static str) -> Message {
    Message::Close(Some(CloseFrame { code: code.into(), reason: reason.into() }))
}
