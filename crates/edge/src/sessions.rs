//! The sessions' listener: programs dial in over WebSocket.
//!
//! The upgrade is judged here ([`SessionListener`]): Host and Origin, the path, the token in it. What is said
//! on the socket goes to the [`Switchboard`], which has the machine of `toolgate-session`.
//!
//! Invariant: a token is known only by its SHA-256, compared in constant time, and never in a log.
//! Invariant: sockets have a number, frames a size, outbound queues a length, and whoever says too
//! much is heard more slowly.
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
