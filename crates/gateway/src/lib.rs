//! The gateway: the way of every message between agents and servers.
//!
//! An agent opens an [`AgentSession`] on the [`Gateway`]; its requests go over a link to a
//! [`Server`], through a [`Channel`](channel::Channel) that the edge provides; what comes back is
//! read from an [`EventBuffer`](event_buffer::EventBuffer).
//!
//! Invariant: no HTTP, no processes, no files, no SQL here; connectors, ids and settings are given.
//! Invariant: ids and progress tokens towards a server are the gateway's own; everything else in a
//! message passes as it came.
//!
//! Start at [`Gateway::open`] and [`AgentSession::request`].

mod aggregate;
mod dial_in;
mod downstream;
#[cfg(fuzzing)]
pub mod fuzz;
mod gateway;
mod inspect;
mod sessionless;

pub use dial_in::{
    DriverEnvironment, Gate, Note, Records, SessionClasses, SessionDriver, SocketCommand,
};
pub use downstream::agent::{AgentSession, Attached};
pub use downstream::call::Call;
pub use downstream::endpoint::Endpoint;
pub use downstream::streams::EventId;
pub use gateway::{AgentSessions, Gateway, NotOpened};
pub use inspect::known::{KnownServer, KnownTool, Named};
pub use toolgate_admission::access::{Access, Frozen, Grant, InForce, LastTold};
pub use toolgate_admission::admit::{Admission, Refresh, Sender, Writing};
pub use toolgate_admission::denials::{Listener, Peer, Stranger, Strangers};
pub use toolgate_admission::environment::{Clock, Ids};
pub use toolgate_upstream::channel;
pub use toolgate_upstream::event_buffer;
pub use toolgate_upstream::failure::{Effect, Failure};
pub use toolgate_upstream::link::{Instances, Server, ServerSettings};
pub use toolgate_upstream::log_limit::LogLimit;
pub use toolgate_upstream::metrics::{Metrics, ServerMetrics};
pub use toolgate_upstream::relay::{LastPiece, RelayReader, RelayWriter, Truncated};
pub use toolgate_upstream::rewrite::refused;

/// Requests of protocol 2026-07-28, which have no session.
pub mod modern {
    pub use crate::gateway::NotStarted;
    pub use crate::sessionless::{Client, ModernCall, ModernStream, Started};
}
