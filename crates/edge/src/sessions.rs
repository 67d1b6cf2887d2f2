//! The sessions' listener: programs dial in over WebSocket.
//!
//! [`SessionListener`] checks the upgrade: Host and Origin, the path, the token in it. Frames go to the
//! `SessionDriver` of the gateway, and its commands to the socket.
//!
//! Invariant: a token is known only by its SHA-256, compared in constant time, and never logged.
//! Invariant: sockets are limited in number, frames in size and outbound queues in length; a program
//! that sends too much is read more slowly.
//!
//! Start at `SessionListener::new`, then `sessions/socket.rs`.

mod intake;
mod listener;
mod rate_limit;
mod socket;
mod tokens;

pub use self::listener::{SessionListener, SessionListenerBounds, SessionListenerRules};
pub use self::tokens::{KnownToken, Tokens};
