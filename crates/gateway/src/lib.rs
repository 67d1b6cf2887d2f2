//! The gateway: the path of every message between agents and servers.
//!
//! An agent opens an [`AgentSession`] on the [`Gateway`]; its requests go over a link to a
//! [`Server`], through a [`Channel`](channel::Channel) that the edge provides; answers are read from an
//! [`EventBuffer`](event_buffer::EventBuffer).
//!
//! Invariant: no HTTP, processes, files or SQL here; connectors, ids and settings are passed in.
//! Invariant: ids and progress tokens towards a server are the gateway's own; every other part of a
//! message passes unchanged.
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
pub use gateway::{AgentSessions, Gateway, NotListed, NotOpened};
pub use inspect::definitions::{KnownDefinition, NotApprovable};
pub use inspect::known::{KnownServer, KnownTool};
pub use inspect::person_call::{NotCalled, PersonCall};
pub use inspect::resolve::{ResolvedTool, built_in_class};
pub use toolgate_admission::access::{
    Access, Acting, ActivePolicy, Approver, Approvers, Frozen, Grant, GrantedException, IN_BAND,
    LastUse,
};
pub use toolgate_admission::admit::{Admission, ArgumentRecording, Refresh, RefreshError};
pub use toolgate_admission::auth_failures::{AuthFailureReason, AuthFailures, Listener, Peer};
pub use toolgate_admission::delegation::{Delegation, Delegations};
pub use toolgate_admission::environment::{Clock, Ids};
pub use toolgate_upstream::channel;
pub use toolgate_upstream::event_buffer;
pub use toolgate_upstream::failure::{Effect, Failure};
pub use toolgate_upstream::link::{Instances, Server, ServerSettings};
pub use toolgate_upstream::log_limit::LogLimit;
pub use toolgate_upstream::log_tail::LogTail;
pub use toolgate_upstream::metrics::{Metrics, ServerMetrics};
pub use toolgate_upstream::pins::{
    APPROVED as APPROVED_TOOLS, Approval, PinMode, SPACE as PINS, approval_key,
};
pub use toolgate_upstream::relay::{LastPiece, RelayReader, RelayWriter, Truncated};
pub use toolgate_upstream::results::Results;
pub use toolgate_upstream::rewrite::refused;
pub use toolgate_upstream::status::{LastError, ServerState, ServerStatus};
pub use toolgate_upstream::stored_lists::{SPACE as LISTS, stored_tools};

/// Requests of clients of protocol 2026-07-28, which have no agent session.
pub mod sessionless_clients {
    pub use crate::gateway::NotStarted;
    pub use crate::sessionless::{Client, SessionlessCall, SessionlessStream, Started};
}
