//! Upstream: servers, the links to them, and the path of a request to a server and back.
//!
//! A [`link`] owns the conversation with one server over a [`channel`]; it knows agents only by the
//! trait [`link::Agent`]. A server's lists are cached (`list_cache.rs`) and refreshed in the
//! background (`link/list_refresh.rs`).
//!
//! Invariant: nothing here knows agent sessions, endpoints or how lists of several servers are
//! merged.
//!
//! Start at [`forward::forward`] and [`link::Link`].

mod annotations;
pub mod arguments;
mod backoff;
pub mod channel;
pub mod cursors;
pub mod era;
pub mod event_buffer;
pub mod failure;
pub mod forward;
#[cfg(fuzzing)]
pub mod fuzz;
pub mod held_agent;
mod imitation;
mod label;
pub mod link;
pub mod list_cache;
mod listed_names;
pub mod lists;
pub mod log_level;
pub mod log_limit;
pub mod log_tail;
pub mod metrics;
pub mod names;
pub mod pins;
pub mod relay;
pub mod reply;
pub mod resubscribe;
pub mod results;
pub mod rewrite;
mod shown_uris;
pub mod status;
pub mod stored_lists;
pub mod tasks;
