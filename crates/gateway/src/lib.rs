//! The gateway: the way of every message between agents and servers.
//!
//! An agent opens an [`AgentSession`] on the [`Gateway`]; its requests go over a link to a
//! [`Server`], through a [`Channel`](channel::Channel) that the edge provides; what comes back is
//! read from an [`Outlet`](outlet::Outlet).
//!
//! Invariant: no HTTP, no processes, no files, no SQL here; connectors, ids and settings are given.
//! Invariant: ids and progress tokens towards a server are the gateway's own; everything else in a
//! message passes as it came.
//!
//! Start at [`Gateway::open`] and [`AgentSession::request`].

mod access;
mod admission;
mod agent;
mod all;
mod annotations;
mod backoff;
mod barred;
mod call;
mod caller;
pub mod channel;
mod clearance;
mod endpoint;
mod environment;
mod era;
mod expects;
mod failure;
mod foresee;
mod forward;
mod gateway;
mod heard;
mod imitation;
mod known;
mod label;
mod legs;
mod link;
mod links;
mod list_kind;
mod lists;
mod log_level;
mod measure;
mod metrics;
mod names;
mod offers;
pub mod outlet;
mod pace;
mod passage;
mod patience;
mod recheck;
mod refused;
mod reserved;
mod rewrite;
mod seal;
mod sessionless;
mod sessions;
mod shown;
mod sight;
mod sparing;
mod strangers;
mod streams;
mod task_book;
mod task_call;
mod tasks;
mod trial;
mod turns;
mod wanted;
mod wishes;
mod withheld;
mod work;

pub use access::{Access, Frozen, Grant, InForce, LastTold};
pub use admission::{Admission, Refresh, Sender, Writing};
pub use agent::{AgentSession, Attached};
pub use call::Call;
pub use endpoint::Endpoint;
pub use environment::{Clock, Ids};
pub use failure::{Effect, Failure};
pub use gateway::{AgentSessions, Gateway, NotOpened};
pub use known::{KnownServer, KnownTool};
pub use link::{Instances, Server, ServerSettings};
pub use metrics::{Metrics, ServerMetrics};
pub use passage::{BrokenOff, Held, Onward, Passage};
pub use rewrite::refused;
pub use sessions::{Gate, Note, Records, Sending, Sent, Sessions, Showing, Unresolved};
pub use strangers::{Listener, Peer, Stranger, Strangers};
pub use streams::EventId;

/// Requests of protocol 2026-07-28, which have no session.
pub mod modern {
    pub use crate::gateway::NotStarted;
    pub use crate::sessionless::{Client, ModernCall, ModernStream, Started};
}
