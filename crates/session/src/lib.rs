//! Sessions: programs that dial in over WebSocket and publish tools, as a pure state machine.
//!
//! [`SessionMachine::handle`] takes what has happened and gives what is to be done: frames to send,
//! sockets to close, calls to answer, things to write down, when to wake up. Whoever has sockets
//! and a clock drives it. [`SessionMachine::resolve`] finds out where a call goes before it is let in,
//! [`SessionMachine::published`] is what an agent sees.
//!
//! # Driving it
//!
//! One task owns the [`SessionMachine`]. It gives every accepted socket and every call a number, tells
//! what happens with [`SessionMachine::handle`], does what [`Outputs::list`] says in its order, and comes
//! back with [`Input::Wake`] at [`Outputs::wake_at`]. Frames larger than the limit, binary frames
//! and tokens are its own affair; so are bounded outbound queues: a socket whose queue is full is
//! closed and told as [`Input::Closed`]. After [`Output::Close`] it may still tell what comes in,
//! and tells [`Input::Closed`] in the end.
//!
//! A call takes two steps: [`SessionMachine::resolve`] says where it would go, so that it can be decided
//! and counted; then [`Input::Call`] lets it in, and [`Output::Answer`] ends it, exactly once.
//!
//! Invariant: no sockets, no clock, no randomness, no files.
//! Start at `machine.rs`; what is said on the wire is in `frame.rs` (and how frames
//! travel in `websocket.rs`), what is not obvious about it
//! in `docs/decisions/0007-sessions.md`.

mod arguments;
mod bounds;
mod catalog;
mod entry;
mod failure;
mod frame;
mod glob;
mod io;
mod keys;
mod list;
mod machine;
mod names;
mod object;
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
pub use catalog::{Published, PublishedTool};
pub use entry::{EntryKey, ShowcaseEntry, ShowcaseLimits};
pub use failure::{Candidate, Effect, SessionFailure};
pub use frame::Frame;
pub use glob::Glob;
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
pub use settings::{Idle, KindSettings, SchemaConflict, SessionSettings, ToolSettings};
pub use showcase::{ImportError, export, import, new_to};
pub use target::CallTarget;
pub use time::Millis;
pub use tool::{Schema, Tool, Tools};
pub use tool_result::{ToolResult, from_error, from_result};
pub use websocket::{
    Opcode, WebSocketError, WebSocketMessage, WebSocketReader, encode, encode_close,
};
