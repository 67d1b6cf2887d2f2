//! Sessions: programs that dial in over WebSocket and publish tools, as a pure state machine.
//!
//! [`Sessions::handle`] takes what has happened and gives what is to be done: frames to send,
//! sockets to close, calls to answer, things to write down, when to wake up. Whoever has sockets
//! and a clock drives it. [`Sessions::resolve`] finds out where a call goes before it is let in,
//! [`Sessions::published`] is what an agent sees.
//!
//! # Driving it
//!
//! One task owns the [`Sessions`]. It gives every accepted socket and every call a number, tells
//! what happens with [`Sessions::handle`], does what [`Outputs::list`] says in its order, and comes
//! back with [`Input::Wake`] at [`Outputs::wake_at`]. Frames larger than the limit, binary frames
//! and tokens are its own affair; so are bounded outbound queues: a socket whose queue is full is
//! closed and told as [`Input::Closed`]. After [`Output::Close`] it may still tell what comes in,
//! and tells [`Input::Closed`] in the end.
//!
//! A call takes two steps: [`Sessions::resolve`] says where it would go, so that it can be decided
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
mod io;
mod keys;
mod list;
mod machine;
mod names;
mod outcome;
mod pool;
mod reach;
mod registration;
mod route;
mod schema;
mod settings;
mod showcase;
mod spoken;
mod target;
mod time;
mod timers;
mod tool;
mod websocket;

#[cfg(test)]
mod sim;

pub use bounds::referred;
pub use catalog::{ListSource, Published, PublishedTool};
pub use entry::{Entry, Key, Room};
pub use failure::{Candidate, Effect, Failure};
pub use frame::Frame;
pub use io::{Answer, Call, CallId, Event, Input, Output, Outputs, SocketId, ViewId, What};
pub use list::Counts;
pub use machine::Sessions;
pub use names::{Known, Offered};
pub use outcome::{ToolResult, from_error, from_result};
pub use reach::{Reach, Token};
pub use route::Asked;
pub use settings::{Idle, KindSettings, SchemaConflict, Settings, ToolSettings};
pub use showcase::{ImportError, export, import, new_to};
pub use spoken::{Reader, Spoken};
pub use target::Target;
pub use time::Millis;
pub use tool::{Schema, Tool, Tools};
pub use toolgate_policy::Glob;
pub use websocket::{Ear, Fault, Heard, Opcode, encode, encode_close};
