//! Sessions: programs that dial in over WebSocket and publish tools, as a pure state machine.
//!
//! [`SessionMachine::handle`] takes an event and returns actions: frames to send, sockets to close,
//! calls to answer, events to record, and when to wake up. A driver with sockets and a clock runs
//! it. [`SessionMachine::resolve`] selects the session of a call before it is admitted,
//! [`SessionMachine::published`] is the list that an agent sees.
//!
//! # Driving it
//!
//! One task owns the [`SessionMachine`]. It numbers every accepted socket and every call, reports
//! events to [`SessionMachine::handle`], executes [`Outputs::list`] in order, and sends
//! [`Input::Wake`] at [`Outputs::wake_at`]. The driver itself handles frames above the limit,
//! binary frames, tokens and bounded outbound queues: it closes a socket whose queue is full and
//! reports [`Input::Closed`]. After [`Output::Close`] it may still report received frames, and
//! finally reports [`Input::Closed`].
//!
//! A call takes two steps: [`SessionMachine::resolve`] selects its session, so that the call can be
//! decided and counted; then [`Input::Call`] starts it, and [`Output::Answer`] ends it, exactly
//! once.
//!
//! Invariant: no sockets, no clock, no randomness, no files.
//! Start at `machine.rs`. The wire format is in `frame.rs`, the framing in `websocket.rs`;
//! `docs/decisions/0007-sessions.md` explains what is not obvious.

mod arguments;
mod bounds;
mod catalog;
mod entry;
mod error;
mod failure;
mod frame;
mod io;
mod keys;
mod list;
mod machine;
mod names;
mod parsed_frame;
mod pool;
mod reach;
mod registration;
mod route;
mod schema;
mod settings;
mod showcase;
mod target;
mod time;
mod timers;
mod tool;
mod tool_result;
mod websocket;

#[cfg(test)]
mod sim;

pub use bounds::referred;
pub use catalog::{ListSource, Published, PublishedTool};
pub use entry::{EntryKey, Publisher, ShowcaseEntry, ShowcaseLimits};
pub use error::FrameError;
pub use failure::{Candidate, Effect, MissingSession, SessionFailure};
pub use frame::Frame;
pub use io::{
    CallAnswer, CallNumber, Input, Output, Outputs, SessionCall, SessionEvent, SessionEventKind,
    SocketId, ViewId,
};
pub use list::SessionCounts;
pub use machine::SessionMachine;
pub use names::{KindDefinition, KnownSessionTool};
pub use parsed_frame::{FrameParser, ParsedFrame};
pub use reach::{Reach, SocketToken};
pub use route::CallArguments;
pub use settings::{Idle, KindSettings, SchemaConflict, Selectors, SessionSettings, ToolSettings};
pub use showcase::{ImportError, export, import, new_to};
pub use target::CallTarget;
pub use time::Millis;
pub use tool::{Schema, Tool, Tools};
pub use tool_result::{ToolResult, from_error, from_result};
pub use toolgate_policy::Glob;
pub use websocket::{
    Opcode, WebSocketError, WebSocketMessage, WebSocketReader, encode, encode_close,
};
