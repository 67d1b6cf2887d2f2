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
mod builtin;
mod call;
pub mod channel;
mod clearance;
mod ended;
mod endpoint;
mod era;
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
mod lists;
mod measure;
mod metrics;
pub mod modern;
mod names;
mod offers;
mod on_behalf;
pub mod outlet;
mod pace;
mod passage;
mod patience;
mod recheck;
mod refused;
mod rewrite;
mod seal;
mod server;
mod sessions;
mod shown;
mod sight;
mod sparing;
mod strangers;
mod streams;
mod tasks;
mod trial;
mod turns;
mod wishes;

pub use access::{Access, Frozen, Grant, InForce, LastTold};
pub use admission::{Admission, Clock, Refresh, Sender, Writing};
pub use agent::{AgentSession, Attached};
pub use call::Call;
pub use endpoint::Endpoint;
pub use failure::{Effect, Failure};
pub use gateway::{AgentSessions, Gateway, Ids, NotOpened};
pub use known::{KnownServer, KnownTool, Named};
pub use metrics::{Metrics, ServerMetrics};
pub use passage::{BrokenOff, Held, Onward, Passage};
pub use rewrite::refused;
pub use server::{Instances, Server, ServerSettings};
pub use sessions::{
    Gate, Note, Records, Sending, Sent, SessionClasses, Sessions, Showing, Unresolved,
};
pub use strangers::{Listener, Peer, Stranger, Strangers};
pub use streams::EventId;
