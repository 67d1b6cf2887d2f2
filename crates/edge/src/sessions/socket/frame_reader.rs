//! Reads the frames of one socket and passes them to the switchboard.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf, ReadHalf};
use tokio::time::Instant;
use toolgate_session::{Ear, Fault, Heard, Input, SocketId, What};

use super::Order;
use crate::sessions::intake::IntakeShare;
use crate::sessions::rate_limit::RateLimit;
use crate::sessions::switchboard::Switchboard;
use crate::tls::Stream;

/// How many bytes are read at once.
const CHUNK: usize = 8 * 1024;
/// How many messages are processed before the responses are sent: fewer than the outbound queue
/// holds.
const AT_ONCE: usize = 16;

const TOO_LARGE: (u16, &str) = (1009, "the frame is larger than the limit");
const NOT_UTF8: (u16, &str) = (1007, "a text must be UTF-8");
const NO_WEBSOCKET: u16 = 1002;
/// The answer to a close frame.
const GOODBYE: (u16, &str) = (1000, "");

/// The frame decoder of one socket, with its limits.
pub(super) struct FrameReader<'a> {
    board: &'a Switchboard,
    socket: SocketId,
    decoder: Ear,
    share: IntakeShare,
    rate_limit: RateLimit,
    warned: bool,
    /// Bytes that were read but not processed yet.
    rest: Vec<u8>,
}

/// What to do next.
pub(super) enum Next {
    /// Continue reading.
    More,
    /// Yield to other tasks.
    Breathe,
    /// The socket has sent too much; delay.
    Wait(Duration),
    /// The other side has closed.
    Closed,
    /// It is being closed, and its input is ignored.
    Refused,
    /// The connection is lost.
    Lost,
}

impl<'a> FrameReader<'a> {
    pub(super) fn new(
        board: &'a Switchboard,
        socket: SocketId,
        frame: usize,
        share: IntakeShare,
    ) -> Self {
        let (decoder, rate_limit) = (Ear::new(frame), RateLimit::new(Instant::now()));
        Self { board, socket, decoder, share, rate_limit, warned: false, rest: Vec::new() }
    }

    /// Reads and processes. The buffer is on the stack, so that an idle socket has none.
    pub(super) async fn read(&mut self, from: &mut ReadHalf<Stream>) -> Next {
        poll_fn(|context| {
            let mut chunk = [0; CHUNK];
            let mut chunk = ReadBuf::new(&mut chunk);
            let read = ready!(Pin::new(&mut *from).poll_read(context, &mut chunk));
            Poll::Ready(match read {
                Ok(()) if chunk.filled().is_empty() => Next::Lost,
                Ok(()) => self.receive(chunk.filled()),
                Err(error) => {
                    tracing::debug!(%error, "session socket closed");
                    Next::Lost
                }
            })
        })
        .await
    }

    /// Whether bytes were read but not processed yet.
    pub(super) fn is_behind(&self) -> bool {
        !self.rest.is_empty()
    }

    /// Continues processing.
    pub(super) fn catch_up(&mut self) -> Next {
        let rest = std::mem::take(&mut self.rest);
        self.receive(&rest)
    }

    /// Processes bytes.
    pub(super) fn receive(&mut self, mut bytes: &[u8]) -> Next {
        let mut told = 0;
        let next = loop {
            match self.decoder.take(&mut bytes) {
                Ok(None) => break Next::More,
                Ok(Some(Heard::Close)) => break self.part(),
                Ok(Some(heard)) => {
                    if let Some(pause) = self.tell(heard) {
                        break Next::Wait(pause);
                    }
                }
                Err(fault) => break self.refuse(fault),
            }
            told += 1;
            if told == AT_ONCE {
                break Next::Breathe;
            }
        };
        self.share.holds(self.decoder.held());
        if matches!(next, Next::Wait(_) | Next::Breathe) {
            self.rest = bytes.to_vec();
        }
        next
    }

    /// Passes a message to the switchboard; returns the delay before the next one.
    fn tell(&mut self, heard: Heard) -> Option<Duration> {
        let (board, socket) = (self.board, self.socket);
        let bytes = match heard {
            Heard::Text(text) => {
                if board.hear_text(socket, &text) {
                    return None;
                }
                text.len()
            }
            Heard::Ping(payload) => {
                let bytes = payload.len();
                board.hear(Input::Alive { socket });
                board.order(socket, Order::Pong(payload));
                bytes
            }
            Heard::Binary(bytes) => {
                board.hear(Input::Alive { socket });
                bytes
            }
            Heard::Pong | Heard::Close => {
                board.hear(Input::Alive { socket });
                0
            }
        };
        let pause = self.rate_limit.charge(bytes, Instant::now())?;
        if !std::mem::replace(&mut self.warned, true) {
            let what = "rate limit exceeded; its frames are delayed".to_owned();
            board.tell(What::Flooding, Some(socket), what);
        }
        Some(pause)
    }

    /// The other side has sent a close frame.
    fn part(&mut self) -> Next {
        self.board.order(self.socket, Order::Drop(GOODBYE.0, GOODBYE.1));
        // From now on nothing may be sent on it.
        self.board.close(self.socket);
        Next::Closed
    }

    fn refuse(&mut self, fault: Fault) -> Next {
        let (code, reason) = match fault {
            Fault::TooLarge => {
                self.board.tell(What::FrameTooLarge, Some(self.socket), TOO_LARGE.1.to_owned());
                TOO_LARGE
            }
            Fault::NotUtf8 => NOT_UTF8,
            Fault::Protocol(why) => (NO_WEBSOCKET, why),
        };
        tracing::debug!(code, reason, "session socket rejected");
        self.board.order(self.socket, Order::Close(code, reason));
        Next::Refused
    }
}
