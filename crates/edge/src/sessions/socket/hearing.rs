//! What comes in on one socket, told to the switchboard message by message.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf, ReadHalf};
use tokio::time::Instant;
use toolgate_session::{
    Input, SessionEventKind, SocketId, WebSocketError, WebSocketMessage, WebSocketReader,
};

use super::Order;
use crate::sessions::intake::Share;
use crate::sessions::pace::Pace;
use crate::sessions::switchboard::Switchboard;
use crate::tls::Stream;

/// How much is read at once.
const CHUNK: usize = 8 * 1024;
/// How many messages are told before what they led to is sent: fewer than may wait to be sent.
const AT_ONCE: usize = 16;

const TOO_LARGE: (u16, &str) = (1009, "the frame is larger than the limit");
const NOT_UTF8: (u16, &str) = (1007, "a text must be UTF-8");
const NO_WEBSOCKET: u16 = 1002;
/// The answer to a goodbye.
const GOODBYE: (u16, &str) = (1000, "");

/// The ear of one socket, and what it has left to say.
pub(super) struct Hearing<'a> {
    board: &'a Switchboard,
    socket: SocketId,
    ear: WebSocketReader,
    share: Share,
    pace: Pace,
    warned: bool,
    /// What was read and not yet listened to.
    rest: Vec<u8>,
}

/// What to do next.
pub(super) enum Next {
    /// Go on reading.
    More,
    /// Let others work.
    Breathe,
    /// It has said too much for now.
    Wait(Duration),
    /// The other side has closed.
    Closed,
    /// It is being closed, and not listened to any more.
    Refused,
    /// It is gone.
    Lost,
}

impl<'a> Hearing<'a> {
    pub(super) fn new(
        board: &'a Switchboard,
        socket: SocketId,
        frame: usize,
        share: Share,
    ) -> Self {
        let (ear, pace) = (WebSocketReader::new(frame), Pace::new(Instant::now()));
        Self { board, socket, ear, share, pace, warned: false, rest: Vec::new() }
    }

    /// Reads and listens. The buffer is on the stack, so that who is silent has none.
    pub(super) async fn read(&mut self, from: &mut ReadHalf<Stream>) -> Next {
        poll_fn(|context| {
            let mut chunk = [0; CHUNK];
            let mut chunk = ReadBuf::new(&mut chunk);
            let read = ready!(Pin::new(&mut *from).poll_read(context, &mut chunk));
            Poll::Ready(match read {
                Ok(()) if chunk.filled().is_empty() => Next::Lost,
                Ok(()) => self.hear(chunk.filled()),
                Err(error) => {
                    tracing::debug!(%error, "a session's socket has ended");
                    Next::Lost
                }
            })
        })
        .await
    }

    /// Whether something was read and not listened to.
    pub(super) fn is_behind(&self) -> bool {
        !self.rest.is_empty()
    }

    /// Goes on listening.
    pub(super) fn catch_up(&mut self) -> Next {
        let rest = std::mem::take(&mut self.rest);
        self.hear(&rest)
    }

    /// Listens to bytes.
    pub(super) fn hear(&mut self, mut bytes: &[u8]) -> Next {
        let mut told = 0;
        let next = loop {
            match self.ear.take(&mut bytes) {
                Ok(None) => break Next::More,
                Ok(Some(WebSocketMessage::Close)) => break self.part(),
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
        self.share.holds(self.ear.held());
        if matches!(next, Next::Wait(_) | Next::Breathe) {
            self.rest = bytes.to_vec();
        }
        next
    }

    /// Tells the switchboard; how long to wait before more is heard.
    fn tell(&mut self, heard: WebSocketMessage) -> Option<Duration> {
        let (board, socket) = (self.board, self.socket);
        let bytes = match heard {
            WebSocketMessage::Text(text) => {
                if board.hear_text(socket, &text) {
                    return None;
                }
                text.len()
            }
            WebSocketMessage::Ping(payload) => {
                let bytes = payload.len();
                board.hear(Input::Alive { socket });
                board.order(socket, Order::Pong(payload));
                bytes
            }
            WebSocketMessage::Binary(bytes) => {
                board.hear(Input::Alive { socket });
                bytes
            }
            WebSocketMessage::Pong | WebSocketMessage::Close => {
                board.hear(Input::Alive { socket });
                0
            }
        };
        let pause = self.pace.pay(bytes, Instant::now())?;
        if !std::mem::replace(&mut self.warned, true) {
            let what = "says more than it is asked, and is heard more slowly".to_owned();
            board.tell(SessionEventKind::Flooding, Some(socket), what);
        }
        Some(pause)
    }

    /// The other side has said goodbye.
    fn part(&mut self) -> Next {
        self.board.order(self.socket, Order::Drop(GOODBYE.0, GOODBYE.1));
        // Nothing is to be sent on it any more, from now on and not only when it is gone.
        self.board.close(self.socket);
        Next::Closed
    }

    fn refuse(&mut self, fault: WebSocketError) -> Next {
        let (code, reason) = match fault {
            WebSocketError::TooLarge => {
                self.board.tell(
                    SessionEventKind::FrameTooLarge,
                    Some(self.socket),
                    TOO_LARGE.1.to_owned(),
                );
                TOO_LARGE
            }
            WebSocketError::NotUtf8 => NOT_UTF8,
            WebSocketError::Protocol(why) => (NO_WEBSOCKET, why),
        };
        tracing::debug!(code, reason, "a session's socket cannot be heard");
        self.board.order(self.socket, Order::Close(code, reason));
        Next::Refused
    }
}
