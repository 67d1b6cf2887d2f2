//! One WebSocket: incoming frames go to the switchboard, its orders go out.
//!
//! Invariant: reading and writing do not wait for each other, so two sides that both send much
//! cannot block each other.
//! Invariant: however a socket ends, the switchboard is told.
//! Invariant: an idle socket has no buffer.
//! Invariant: a call is written only if it is still allowed when its turn on the socket comes.
//!
//! Start at [`serve`]; incoming frames are read in `socket/frame_reader.rs`.

mod frame_reader;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use toolgate_gateway::Gate;
use toolgate_session::{CallId, Input, Opcode, SocketId, Token, What, encode, encode_close};

use self::frame_reader::{FrameReader, Next};
use super::intake::IntakeShare;
use super::switchboard::Switchboard;
use crate::tls::Stream;

/// How many frames may wait to be sent on one socket.
const OUTBOUND: usize = 64;
/// How long a frame may take to be sent.
const WRITE: Duration = Duration::from_secs(30);
/// How long the other side may take to answer a close.
const FAREWELL: Duration = Duration::from_secs(2);

const NO_TOKEN: (u16, &str) = (1008, "no valid token in the path");

/// Something to do on a socket.
#[derive(Debug)]
pub(super) enum Order {
    Text(Bytes),
    /// The frame of a call, if the call may still be written.
    Call {
        call: CallId,
        frame: Bytes,
        gate: Arc<Gate>,
    },
    Ping,
    /// The payload of a ping.
    Pong(Vec<u8>),
    Close(u16, &'static str),
    /// Closes without waiting for the other side.
    Drop(u16, &'static str),
}

/// A connection that has become a socket.
pub(super) struct Socket {
    pub(super) stream: Stream,
    /// Bytes received before the upgrade.
    pub(super) early: Bytes,
    /// The largest frame, bytes.
    pub(super) frame: usize,
}

/// Closes a socket without a valid token.
pub(super) async fn reject(mut socket: Socket) {
    let (code, reason) = NO_TOKEN;
    let farewell = async {
        socket.stream.write_all(&encode_close(code, reason)).await?;
        socket.stream.shutdown().await?;
        // Waits until the other side has received it: closing with unread input would discard it.
        tokio::io::copy(&mut socket.stream, &mut tokio::io::sink()).await
    };
    if !matches!(timeout(FAREWELL, farewell).await, Ok(Ok(_))) {
        tracing::debug!("rejected socket not closed in time");
    }
}

/// Serves a socket to its end.
pub(super) async fn serve(board: Arc<Switchboard>, socket: Socket, token: Arc<Token>) {
    let Socket { stream, early, frame } = socket;
    let (share, gives_way) = board.intake().share();
    let (orders, inbox) = mpsc::channel(OUTBOUND);
    let open = Open { id: board.open(orders, token), board, parting: AtomicBool::new(false) };
    let (from, to) = split(stream);
    let mut writing = std::pin::pin!(write(&open, to, inbox));
    let closed = tokio::select! {
        () = &mut writing => false,
        closed = read(&open, from, early, frame, share) => closed,
        () = gives_way.notified() => {
            let what = "closed: too many bytes of unfinished frames".to_owned();
            open.board.tell(What::Unfinished, Some(open.id), what);
            false
        }
    };
    // The other side has closed: answers its close frame, unless that was the answer to ours.
    if closed && !open.parting.load(Ordering::Relaxed) && timeout(FAREWELL, writing).await.is_err()
    {
        tracing::debug!("session socket not closed in time");
    }
}

/// A socket that the switchboard knows of.
struct Open {
    id: SocketId,
    board: Arc<Switchboard>,
    /// Whether we have sent a close frame.
    parting: AtomicBool,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.board.close(self.id);
    }
}

/// Reads until the socket ends; true if the other side has closed it properly.
async fn read(
    open: &Open,
    mut from: ReadHalf<Stream>,
    early: Bytes,
    frame: usize,
    share: IntakeShare,
) -> bool {
    let mut reader = FrameReader::new(&open.board, open.id, frame, share);
    let mut next = reader.receive(&early);
    // It references a larger buffer.
    drop(early);
    loop {
        match next {
            Next::More => {}
            Next::Breathe => tokio::task::yield_now().await,
            Next::Wait(pause) => sleep(pause).await,
            Next::Closed => return true,
            Next::Refused => {
                // Further input is not parsed. It is discarded while the writer sends the close
                // frame: closing with unread input would discard that frame.
                drop(tokio::io::copy(&mut from, &mut tokio::io::sink()).await);
                return false;
            }
            Next::Lost => return false,
        }
        next = if reader.is_behind() { reader.catch_up() } else { reader.read(&mut from).await };
    }
}

async fn write(open: &Open, mut to: WriteHalf<Stream>, mut inbox: mpsc::Receiver<Order>) {
    while let Some(order) = inbox.recv().await {
        let waits = matches!(order, Order::Close(..));
        let last = waits || matches!(order, Order::Drop(..));
        let frame = match order {
            Order::Call { call, frame, gate } => {
                if !gate.opens().await {
                    open.board.hear(Input::Unsent { call });
                    continue;
                }
                encode(Opcode::Text, &frame)
            }
            Order::Text(text) => encode(Opcode::Text, &text),
            Order::Ping => encode(Opcode::Ping, &[]),
            Order::Pong(payload) => encode(Opcode::Pong, &payload),
            Order::Close(code, reason) | Order::Drop(code, reason) => encode_close(code, reason),
        };
        let sending = async {
            to.write_all(&frame).await?;
            // With TLS, written bytes may still be buffered.
            to.flush().await
        };
        let sent = timeout(if last { FAREWELL } else { WRITE }, sending).await;
        if waits {
            open.parting.store(true, Ordering::Relaxed);
            return sleep(FAREWELL).await;
        }
        if last || !matches!(sent, Ok(Ok(()))) {
            return;
        }
    }
}
