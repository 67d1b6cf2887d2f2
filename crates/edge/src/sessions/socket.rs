//! One WebSocket: frames go to the driver, the driver's commands go out.
//!
//! Invariant: reading and writing do not wait for each other, so two peers that both send much cannot
//! block each other.
//! Invariant: however a socket ends, the driver is notified.
//! Invariant: a silent socket has no buffer.
//! Invariant: a call is written only if it is still allowed immediately before the write.
//!
//! Start at [`serve`]; frames are read in `socket/inbound.rs`.

mod inbound;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use toolgate_gateway::{Peer, SessionDriver, SocketCommand};
use toolgate_session::{Opcode, SessionEventKind, SocketId, SocketToken, encode, encode_close};

use self::inbound::{Inbound, Next};
use super::intake::{Intake, IntakeShare};
use crate::tls::Stream;

/// How many frames may wait to be sent on one socket.
const OUTBOUND: usize = 64;
/// How long a frame may take to be sent.
const WRITE: Duration = Duration::from_secs(30);
/// How long the other side may take to answer a close.
const FAREWELL: Duration = Duration::from_secs(2);

const NO_TOKEN: (u16, &str) = (1008, "no valid token in the path");

/// A connection that has become a socket.
pub(super) struct Socket {
    pub(super) stream: Stream,
    /// Bytes received before the upgrade.
    pub(super) early: Bytes,
    /// The largest frame, bytes.
    pub(super) frame: usize,
    /// The address of the program.
    pub(super) peer: Option<Peer>,
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
pub(super) async fn serve(
    driver: Arc<SessionDriver>,
    intake: &Arc<Intake>,
    socket: Socket,
    token: Arc<SocketToken>,
) {
    let Socket { stream, early, frame, peer } = socket;
    let (share, gives_way) = intake.share();
    let (commands, inbox) = mpsc::channel(OUTBOUND);
    let id = driver.open_socket(commands, token, peer);
    let open = Open { id, driver, closing: AtomicBool::new(false) };
    let (from, to) = split(stream);
    let mut writing = std::pin::pin!(write(&open, to, inbox));
    let closed = tokio::select! {
        () = &mut writing => false,
        closed = read(&open, from, early, frame, share) => closed,
        () = gives_way.notified() => {
            let what = "closed: too many bytes of unfinished frames".to_owned();
            open.driver.record(SessionEventKind::Unfinished, Some(open.id), what);
            false
        }
    };
    // The other side has closed: answers its close frame, unless that was the answer to ours.
    if closed && !open.closing.load(Ordering::Relaxed) && timeout(FAREWELL, writing).await.is_err()
    {
        tracing::debug!("session socket not closed in time");
    }
}

/// A socket that the driver knows; dropping it removes it there.
struct Open {
    id: SocketId,
    driver: Arc<SessionDriver>,
    /// Whether a close frame was sent.
    closing: AtomicBool,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.driver.close_socket(self.id);
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
    let mut inbound = Inbound::new(&open.driver, open.id, frame, share);
    let mut next = inbound.receive(&early);
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
        next = if inbound.is_behind() { inbound.catch_up() } else { inbound.read(&mut from).await };
    }
}

async fn write(open: &Open, mut to: WriteHalf<Stream>, mut inbox: mpsc::Receiver<SocketCommand>) {
    while let Some(command) = inbox.recv().await {
        let waits = matches!(command, SocketCommand::Close(..));
        let last = waits || matches!(command, SocketCommand::Drop(..));
        let frame = match command {
            SocketCommand::Call { call, frame, gate } => {
                if !gate.opens().await {
                    open.driver.not_sent(call);
                    continue;
                }
                encode(Opcode::Text, &frame)
            }
            SocketCommand::Text(text) => encode(Opcode::Text, &text),
            SocketCommand::Ping => encode(Opcode::Ping, &[]),
            SocketCommand::Pong(payload) => encode(Opcode::Pong, &payload),
            SocketCommand::Close(code, reason) | SocketCommand::Drop(code, reason) => {
                encode_close(code, reason)
            }
        };
        let sending = async {
            to.write_all(&frame).await?;
            // With TLS, written bytes may still be buffered.
            to.flush().await
        };
        let sent = timeout(if last { FAREWELL } else { WRITE }, sending).await;
        if waits {
            open.closing.store(true, Ordering::Relaxed);
            return sleep(FAREWELL).await;
        }
        if last || !matches!(sent, Ok(Ok(()))) {
            return;
        }
    }
}
