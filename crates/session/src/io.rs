//! What goes into the machine and what comes out of it.

use std::sync::Arc;

use bytes::Bytes;

use crate::entry::{EntryKey, ShowcaseEntry};
use crate::failure::{Effect, SessionFailure};
use crate::parsed_frame::ParsedFrame;
use crate::reach::{Reach, SocketToken};
use crate::target::CallTarget;
use crate::time::Millis;
use crate::tool_result::ToolResult;

/// A WebSocket; the driver numbers them and never uses a number twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub u64);

/// A call; the driver numbers them and never uses a number twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallNumber(pub u64);

/// Somebody who wants to know when what he can see has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ViewId(pub u64);

/// Everything that can happen.
#[derive(Debug)]
pub enum Input<'a> {
    /// A socket was accepted; its token has been checked.
    Opened {
        /// Which.
        socket: SocketId,
        /// With which token it came.
        token: Arc<SocketToken>,
    },
    /// A text frame has come that was read already, by [`crate::FrameParser`].
    Spoken {
        /// On which socket.
        socket: SocketId,
        /// What it says.
        spoken: ParsedFrame<'a>,
    },
    /// A text frame has come.
    Frame {
        /// On which socket.
        socket: SocketId,
        /// Its text.
        text: &'a str,
    },
    /// Something else has come (a ping, a pong, a binary frame): a sign of life.
    Alive {
        /// On which socket.
        socket: SocketId,
    },
    /// A socket is closed or lost.
    Closed {
        /// Which.
        socket: SocketId,
    },
    /// A call was admitted. Its end is told by [`Output::Answer`], exactly once.
    Call(SessionCall),
    /// Whoever called takes the call back.
    Cancel {
        /// Which.
        call: CallNumber,
    },
    /// The frame of a call was not written: the call is not allowed any more. To be told only if
    /// nothing of it was written.
    Unsent {
        /// Which.
        call: CallNumber,
    },
    /// From now on [`Output::ListChanged`] is wanted for what `reach` can see.
    Watch {
        /// Who wants it.
        view: ViewId,
        /// What can be seen.
        reach: Arc<Reach>,
    },
    /// It is not wanted any more.
    Unwatch {
        /// Who wanted it.
        view: ViewId,
    },
    /// A token is no longer valid: its sockets are closed, its sessions end.
    Revoke {
        /// The id that sockets came with; `None` is those that came without.
        token: Option<u32>,
    },
    /// The process stops: every socket is closed with 1012.
    Stop,
    /// The time that [`Outputs::wake_at`] named has come.
    Wake,
}

/// An admitted call, on its way to the session that [`crate::SessionMachine::resolve`] has found.
#[derive(Debug)]
pub struct SessionCall {
    /// Its number.
    pub call: CallNumber,
    /// Where it goes and what it carries.
    pub target: CallTarget,
    /// 128 fresh random bits for the id on the wire.
    pub random: u128,
}

/// What is to be done now, in this order.
#[derive(Debug, Default)]
pub struct Outputs {
    /// The things to do.
    pub list: Vec<Output>,
    /// When [`Input::Wake`] is wanted; replaces any earlier wish.
    pub wake_at: Option<Millis>,
}

/// One thing to do.
#[derive(Debug)]
pub enum Output {
    /// Send a text frame.
    Send {
        /// On which socket.
        socket: SocketId,
        /// The text.
        frame: Bytes,
    },
    /// Send a frame that carries a call, if the call may still be sent. [`Input::Unsent`] tells
    /// that it was not.
    SendCall {
        /// On which socket.
        socket: SocketId,
        /// Which call.
        call: CallNumber,
        /// The text.
        frame: Bytes,
    },
    /// Send a WebSocket ping.
    Ping {
        /// On which socket.
        socket: SocketId,
    },
    /// Close a socket. What still comes in may be told; [`Input::Closed`] must be.
    Close {
        /// Which.
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
    /// The list that a view can see is another one now.
    ListChanged {
        /// Which view.
        view: ViewId,
    },
    /// The store must keep this entry of the showcase.
    Keep(Arc<ShowcaseEntry>),
    /// The store must forget this entry of the showcase.
    Forget(EntryKey),
}

/// How a call has ended.
#[derive(Debug)]
pub struct CallAnswer {
    /// Which call.
    pub call: CallNumber,
    /// The session it went to.
    pub session_id: Arc<str>,
    /// What has come of it.
    pub result: Result<ToolResult, SessionFailure>,
    /// Whether whoever called had taken it back.
    pub cancelled: bool,
    /// Whether the tool has an output schema: see [`SessionFailure::result`].
    pub has_output_schema: bool,
}

impl CallAnswer {
    /// Whether the tool may have run; `None` is: it has run.
    pub fn effect(&self) -> Option<Effect> {
        self.result.as_ref().err().map(SessionFailure::effect)
    }
}

/// Something to count, log and audit. No token and no argument is ever in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEvent {
    /// What has happened.
    pub what: SessionEventKind,
    /// To which session.
    pub session_id: Option<Arc<str>>,
    /// On which socket.
    pub socket: Option<SocketId>,
    /// More about it, for people.
    pub text: String,
}

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SessionEventKind {
    /// A session has begun.
    Registered,
    /// A disconnected session is back.
    Reconnected,
    /// A newer socket has taken the place of a live one.
    TakenOver,
    /// A socket wanted to take over a session that it may not have.
    TakeoverRefused,
    /// One uid is taken over again and again.
    Conflict,
    /// A register lies outside the bounds of its token.
    OutsideBounds,
    /// A session has said goodbye.
    Bye,
    /// A session has lost its socket.
    Lost,
    /// An answer has bound an unregistered socket to its session again.
    Rebound,
    /// A session has ended because it did not come back.
    Expired,
    /// A session has ended because another program has taken its uid, or its token is gone.
    Ended,
    /// An answer belonged to no call that its sender may answer.
    AnswerDropped,
    /// An answer has come after its call had ended; the client is free again.
    LateAnswer,
    /// A frame could not be read.
    BadFrame,
    /// A register was refused: too many sessions of its token have left.
    TooManyAway,
    /// A register was refused.
    RegisterRefused,
    /// A socket did not register in time.
    NotRegistered,
    /// The calls of a session time out again and again.
    Unresponsive,
    /// A session was idle for too long.
    Idle,
    /// A name was published twice by one session.
    DoubledTool,
    /// The showcase has no room for the tools of a session.
    ShowcaseFull,
    /// A socket came without a valid token; the driver tells.
    TokenRefused,
    /// A frame was larger than the limit; the driver tells.
    FrameTooLarge,
    /// Of unfinished frames too much had come, and a socket with an old one was closed; the driver
    /// tells.
    Unfinished,
    /// A socket says too much and is heard more slowly; the driver tells.
    Flooding,
    /// There were too many sockets; the driver tells.
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
