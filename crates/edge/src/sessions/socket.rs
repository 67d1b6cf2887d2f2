//! One WebSocket: what comes in goes to the switchboard, what it orders goes out.
//!
//! Invariant: reading and writing do not wait for each other, so two sides that both have much to
//! say cannot block each other.
//! Invariant: however this ends, the switchboard is told.
//! Invariant: a socket that nothing comes on has no buffer.
//! Invariant: a call is written only if it is still allowed when its turn on the socket comes.
//!
//! Start at [`serve`]; what comes in is read in `socket/hearing.rs`.

mod hearing;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use toolgate_gateway::Gate;
use toolgate_session::{
    CallNumber, Input, Opcode, SessionEventKind, SocketId, SocketToken, encode, encode_close,
};

use self::hearing::{Hearing, Next};
use super::intake::Share;
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
        call: CallNumber,
        frame: Bytes,
        gate: Arc<Gate>,
    },
    Ping,
    /// What was said in a ping.
    Pong(Vec<u8>),
    Close(u16, &'static str),
    /// Close, and do not wait for whoever is at the other end.
    Drop(u16, &'static str),
}

/// A connection that has become a socket.
pub(super) struct Socket {
    pub(super) stream: Stream,
    /// What came on it before.
    pub(super) early: Bytes,
    /// The largest frame, bytes.
    pub(super) frame: usize,
}

/// Closes a socket that may not come in.
pub(super) async fn turn_away(mut socket: Socket) {
    let (code, reason) = NO_TOKEN;
    let farewell = async {
        socket.stream.write_all(&encode_close(code, reason)).await?;
        socket.stream.shutdown().await?;
        // Until the other side has heard it: to close on what it still says would cut that short.
        tokio::io::copy(&mut socket.stream, &mut tokio::io::sink()).await
    };
    if !matches!(timeout(FAREWELL, farewell).await, Ok(Ok(_))) {
        tracing::debug!("a socket without a token did not close in time");
    }
}

/// Serves a socket to its end.
pub(super) async fn serve(board: Arc<Switchboard>, socket: Socket, token: Arc<SocketToken>) {
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
            let what = "closed: too much has come of frames that are not finished".to_owned();
            open.board.tell(SessionEventKind::Unfinished, Some(open.id), what);
            false
        }
    };
    // The other side has closed: its goodbye is answered, unless it was the answer to ours.
    if closed && !open.parting.load(Ordering::Relaxed) && timeout(FAREWELL, writing).await.is_err()
    {
        tracing::debug!("a session's socket did not close in time");
    }
}

/// A socket that the switchboard knows of.
struct Open {
    id: SocketId,
    board: Arc<Switchboard>,
    /// Whether we have said goodbye.
    parting: AtomicBool,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.board.close(self.id);
    }
}

/// Reads until the socket ends; true if the other side has closed it as one should.
async fn read(
    open: &Open,
    mut from: ReadHalf<Stream>,
    early: Bytes,
    frame: usize,
    share: Share,
) -> bool {
    let mut hearing = Hearing::new(&open.board, open.id, frame, share);
    let mut next = hearing.hear(&early);
    // It is a part of a larger buffer.
    drop(early);
    loop {
        match next {
            Next::More => {}
            Next::Breathe => tokio::task::yield_now().await,
            Next::Wait(pause) => sleep(pause).await,
            Next::Closed => return true,
            Next::Refused => {
                // What still comes is no frame any more. It is taken all the same, for as long as
                // the writer says goodbye: to close on it would cut the goodbye short.
                drop(tokio::io::copy(&mut from, &mut tokio::io::sink()).await);
                return false;
            }
            Next::Lost => return false,
        }
        next = if hearing.is_behind() { hearing.catch_up() } else { hearing.read(&mut from).await };
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
            // Under TLS what was written may still wait to leave.
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
