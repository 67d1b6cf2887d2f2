//! Inbound frames of one socket, passed to the driver message by message.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf, ReadHalf};
use tokio::time::Instant;
use toolgate_gateway::{SessionDriver, SocketCommand};
use toolgate_session::{
    SessionEventKind, SocketId, WebSocketError, WebSocketMessage, WebSocketReader,
};

use crate::sessions::intake::IntakeShare;
use crate::sessions::rate_limit::RateLimit;
use crate::tls::Stream;

/// How much is read at once.
const CHUNK: usize = 8 * 1024;
/// How many messages are passed on before their answers are sent: fewer than may wait to be sent.
const AT_ONCE: usize = 16;

const TOO_LARGE: (u16, &str) = (1009, "the frame is larger than the limit");
const NOT_UTF8: (u16, &str) = (1007, "a text must be UTF-8");
const NO_WEBSOCKET: u16 = 1002;
/// The answer to a close frame.
const GOODBYE: (u16, &str) = (1000, "");

/// Reads the frames of one socket.
pub(super) struct Inbound<'a> {
    driver: &'a SessionDriver,
    socket: SocketId,
    ear: WebSocketReader,
    share: IntakeShare,
    limit: RateLimit,
    warned: bool,
    /// Bytes that were read and not yet parsed.
    rest: Vec<u8>,
}

/// What to do next.
pub(super) enum Next {
    /// Continue reading.
    More,
    /// Yield to other tasks.
    Breathe,
    /// Wait: it exceeds its rate.
    Wait(Duration),
    /// The other side has closed.
    Closed,
    /// It is being closed, and frames are ignored.
    Refused,
    /// It is gone.
    Lost,
}

impl<'a> Inbound<'a> {
    pub(super) fn new(
        driver: &'a SessionDriver,
        socket: SocketId,
        frame: usize,
        share: IntakeShare,
    ) -> Self {
        let (ear, limit) = (WebSocketReader::new(frame), RateLimit::new(Instant::now()));
        Self { driver, socket, ear, share, limit, warned: false, rest: Vec::new() }
    }

    /// Reads and parses. The buffer is on the stack, so that a silent socket has none.
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

    /// Whether bytes were read and not parsed.
    pub(super) fn is_behind(&self) -> bool {
        !self.rest.is_empty()
    }

    /// Continues with the bytes that were not parsed.
    pub(super) fn catch_up(&mut self) -> Next {
        let rest = std::mem::take(&mut self.rest);
        self.receive(&rest)
    }

    /// Parses bytes and passes on the messages in them.
    pub(super) fn receive(&mut self, mut bytes: &[u8]) -> Next {
        let mut passed = 0;
        let next = loop {
            match self.ear.take(&mut bytes) {
                Ok(None) => break Next::More,
                Ok(Some(WebSocketMessage::Close)) => break self.peer_closed(),
                Ok(Some(message)) => {
                    if let Some(pause) = self.pass(message) {
                        break Next::Wait(pause);
                    }
                }
                Err(fault) => break self.refuse(fault),
            }
            passed += 1;
            if passed == AT_ONCE {
                break Next::Breathe;
            }
        };
        self.share.holds(self.ear.held());
        if matches!(next, Next::Wait(_) | Next::Breathe) {
            self.rest = bytes.to_vec();
        }
        next
    }

    /// Passes a message to the driver; how long to wait before more is read.
    fn pass(&mut self, message: WebSocketMessage) -> Option<Duration> {
        let (driver, socket) = (self.driver, self.socket);
        let bytes = match message {
            WebSocketMessage::Text(text) => {
                if driver.receive_text(socket, &text) {
                    return None;
                }
                text.len()
            }
            WebSocketMessage::Ping(payload) => {
                let bytes = payload.len();
                driver.receive_other(socket);
                driver.command(socket, SocketCommand::Pong(payload));
                bytes
            }
            WebSocketMessage::Binary(bytes) => {
                driver.receive_other(socket);
                bytes
            }
            WebSocketMessage::Pong | WebSocketMessage::Close => {
                driver.receive_other(socket);
                0
            }
        };
        let pause = self.limit.charge(bytes, Instant::now())?;
        if !std::mem::replace(&mut self.warned, true) {
            let what = "rate limit exceeded; its frames are delayed".to_owned();
            driver.record(SessionEventKind::Flooding, Some(socket), what);
        }
        Some(pause)
    }

    /// The peer has sent a close frame.
    fn peer_closed(&mut self) -> Next {
        self.driver.command(self.socket, SocketCommand::Drop(GOODBYE.0, GOODBYE.1));
        // Nothing is sent on it from now on, not only after it is gone.
        self.driver.close_socket(self.socket);
        Next::Closed
    }

    fn refuse(&mut self, fault: WebSocketError) -> Next {
        let (code, reason) = match fault {
            WebSocketError::TooLarge => {
                self.driver.record(
                    SessionEventKind::FrameTooLarge,
                    Some(self.socket),
                    TOO_LARGE.1.to_owned(),
                );
                TOO_LARGE
            }
            WebSocketError::NotUtf8 => NOT_UTF8,
            WebSocketError::Protocol(why) => (NO_WEBSOCKET, why),
        };
        tracing::debug!(code, reason, "frame rejected; closing the session's socket");
        self.driver.command(self.socket, SocketCommand::Close(code, reason));
        Next::Refused
    }
}
