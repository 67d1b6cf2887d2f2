//! The sessions' listener: programs dial in over WebSocket.
//!
//! [`SessionListener`] checks the upgrade: Host and Origin, the path, and the token in it. Frames
//! of a socket go to the [`Switchboard`], which drives the machine of `toolgate-session`.
//!
//! Invariant: a token is known only by its SHA-256, compared in constant time, and never logged.
//! Invariant: the number of sockets, the size of frames and the length of outbound queues are
//! bounded, and a socket that sends too much is read more slowly.
//!
//! Start at `SessionListener::open`, then `sessions/switchboard.rs` and `sessions/socket.rs`.

mod board;
mod intake;
mod listener;
mod rate_limit;
mod socket;
mod switchboard;
mod tokens;

pub use self::listener::{SessionListener, SessionListenerRules};
pub use self::switchboard::{Outside, Switchboard};
pub use self::tokens::{KnownToken, Tokens};
