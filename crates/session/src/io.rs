//! Inputs and outputs of the machine.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;

use crate::entry::{EntryKey, ShowcaseEntry};
use crate::failure::{Effect, SessionFailure};
use crate::parsed_frame::ParsedFrame;
use crate::reach::{Reach, SocketToken};
use crate::target::CallTarget;
use crate::time::Millis;
use crate::tool_result::ToolResult;

/// A WebSocket; the driver numbers them and never reuses a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub u64);

/// A call; the driver numbers them and never reuses a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallNumber(pub u64);

/// A subscriber to changes of a tool list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ViewId(pub u64);

/// An event that the driver reports.
#[derive(Debug)]
pub enum Input<'a> {
    /// A socket was accepted; its token has been checked.
    Opened {
        /// The socket.
        socket: SocketId,
        /// The token it presented.
        token: Arc<SocketToken>,
        /// The address of the program, if it is known.
        peer: Option<IpAddr>,
    },
    /// A text frame was received and already parsed by [`crate::FrameParser`].
    Spoken {
        /// The socket.
        socket: SocketId,
        /// The parsed frame.
        spoken: ParsedFrame<'a>,
    },
    /// A text frame was received.
    Frame {
        /// The socket.
        socket: SocketId,
        /// Its text.
        text: &'a str,
    },
    /// Anything else was received (a ping, a pong, a binary frame), which shows that the peer is
    /// alive.
    Alive {
        /// The socket.
        socket: SocketId,
    },
    /// A socket is closed or lost.
    Closed {
        /// The socket.
        socket: SocketId,
    },
    /// A call was admitted. [`Output::Answer`] ends it, exactly once.
    Call(SessionCall),
    /// The caller cancelled the call.
    Cancel {
        /// The call.
        call: CallNumber,
    },
    /// The frame of a call was not written, because the call is no longer allowed. Report this only
    /// if no byte of it was written.
    Unsent {
        /// The call.
        call: CallNumber,
    },
    /// Subscribes to [`Output::ListChanged`] for what `reach` can see.
    Watch {
        /// The subscriber.
        view: ViewId,
        /// Which sessions it sees.
        reach: Arc<Reach>,
    },
    /// Ends the subscription.
    Unwatch {
        /// The subscriber.
        view: ViewId,
    },
    /// A token is no longer valid: its sockets are closed, its sessions end.
    Revoke {
        /// The id of the token; `None` for sockets without one.
        token: Option<u32>,
    },
    /// The process stops: every socket is closed with 1012.
    Stop,
    /// The time in [`Outputs::wake_at`] has come.
    Wake,
}

/// An admitted call to the session that [`crate::SessionMachine::resolve`] selected.
#[derive(Debug)]
pub struct SessionCall {
    /// Its number.
    pub call: CallNumber,
    /// Its target and arguments.
    pub target: CallTarget,
    /// 128 fresh random bits for the id on the wire.
    pub random: u128,
}

/// What the driver must do, in this order.
#[derive(Debug, Default)]
pub struct Outputs {
    /// The actions.
    pub list: Vec<Output>,
    /// When to send [`Input::Wake`]; replaces any earlier time.
    pub wake_at: Option<Millis>,
}

/// One action.
#[derive(Debug)]
pub enum Output {
    /// Send a text frame.
    Send {
        /// The socket.
        socket: SocketId,
        /// The text.
        frame: Bytes,
    },
    /// Send a frame that carries a call, if the call is still allowed; otherwise report
    /// [`Input::Unsent`].
    SendCall {
        /// The socket.
        socket: SocketId,
        /// The call.
        call: CallNumber,
        /// The text.
        frame: Bytes,
    },
    /// Send a WebSocket ping.
    Ping {
        /// The socket.
        socket: SocketId,
    },
    /// Close a socket. Frames that still arrive may be reported; [`Input::Closed`] must be.
    Close {
        /// The socket.
        socket: SocketId,
        /// The WebSocket close code.
        code: u16,
        /// The reason, for the client.
        reason: &'static str,
    },
    /// A call has ended.
    Answer(CallAnswer),
    /// Something to count, log and audit.
    Event(SessionEvent),
    /// The list of a view has changed.
    ListChanged {
        /// The view.
        view: ViewId,
    },
    /// Store this entry of the showcase.
    Keep(Arc<ShowcaseEntry>),
    /// Remove this entry of the showcase from the store.
    Forget(EntryKey),
}

/// How a call ended.
#[derive(Debug)]
pub struct CallAnswer {
    /// The call.
    pub call: CallNumber,
    /// Its session.
    pub session_id: Arc<str>,
    /// Its result.
    pub result: Result<ToolResult, SessionFailure>,
    /// Whether the caller had cancelled it.
    pub cancelled: bool,
    /// Whether the tool has an output schema: see [`SessionFailure::result`].
    pub has_output_schema: bool,
}

impl CallAnswer {
    /// Whether the tool may have run; `None` if it has run.
    pub fn effect(&self) -> Option<Effect> {
        self.result.as_ref().err().map(SessionFailure::effect)
    }
}

/// An event to count, log and audit. It never contains a token or an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEvent {
    /// The kind of event.
    pub what: SessionEventKind,
    /// The session.
    pub session_id: Option<Arc<str>>,
    /// The socket.
    pub socket: Option<SocketId>,
    /// Details for people.
    pub text: String,
}

/// The kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SessionEventKind {
    /// A session was registered.
    Registered,
    /// A disconnected session reconnected.
    Reconnected,
    /// A newer socket replaced a live one.
    TakenOver,
    /// A socket tried to take over a session without permission.
    TakeoverRefused,
    /// One uid is taken over repeatedly.
    Conflict,
    /// A register is outside the bounds of its token.
    OutsideBounds,
    /// A session ended itself with `session.bye`.
    Bye,
    /// A session lost its socket.
    Lost,
    /// A late answer bound an unregistered socket to its session.
    Rebound,
    /// A session ended because it did not reconnect in time.
    Expired,
    /// A session ended because another program has its uid, or its token was revoked.
    Ended,
    /// An answer matched no call that its sender may answer.
    AnswerDropped,
    /// An answer arrived after its call had ended; the slot is free again.
    LateAnswer,
    /// A frame could not be parsed.
    BadFrame,
    /// A register was refused: too many disconnected sessions of its token.
    TooManyAway,
    /// A list of tools was rejected: those of its token's other sessions take all the room.
    ListsFull,
    /// A register was refused.
    RegisterRefused,
    /// A socket did not register in time.
    NotRegistered,
    /// The calls of a session time out repeatedly.
    Unresponsive,
    /// A session was idle for too long.
    Idle,
    /// A session published a name twice.
    DoubledTool,
    /// The showcase is full.
    ShowcaseFull,
    /// A socket presented no valid token; reported by the driver.
    TokenRefused,
    /// A frame exceeded the limit; reported by the driver.
    FrameTooLarge,
    /// Too many bytes of unfinished frames were buffered, and a socket with an old one was closed;
    /// reported by the driver.
    Unfinished,
    /// A socket sends too much and is throttled; reported by the driver.
    Flooding,
    /// Too many sockets; reported by the driver.
    TooMany,
}

impl SessionEventKind {
    /// The stable name in audit rows and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Registered => "registered",
            Self::Reconnected => "reconnected",
            Self::TakenOver => "taken_over",
            Self::TakeoverRefused => "takeover_refused",
            Self::Conflict => "conflict",
            Self::OutsideBounds => "outside_bounds",
            Self::Bye => "bye",
            Self::Lost => "lost",
            Self::Rebound => "rebound",
            Self::Expired => "expired",
            Self::Ended => "ended",
            Self::AnswerDropped => "answer_dropped",
            Self::LateAnswer => "late_answer",
            Self::BadFrame => "bad_frame",
            Self::TooManyAway => "too_many_away",
            Self::ListsFull => "lists_full",
            Self::RegisterRefused => "register_refused",
            Self::NotRegistered => "not_registered",
            Self::Unresponsive => "unresponsive",
            Self::Idle => "idle",
            Self::DoubledTool => "doubled_tool",
            Self::ShowcaseFull => "showcase_full",
            Self::TokenRefused => "token_refused",
            Self::FrameTooLarge => "frame_too_large",
            Self::Unfinished => "unfinished_frames",
            Self::Flooding => "flooding",
            Self::TooMany => "too_many_sockets",
        }
    }
}
