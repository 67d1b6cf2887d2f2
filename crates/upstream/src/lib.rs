//! Upstream: servers, the links to them, and the way of a request to a server and back.
//!
//! A [`link`] owns a conversation with one server over a [`channel`]; it knows agents by the trait
//! [`link::Agent`] alone. What a server lists is kept (`list_cache.rs`) and refreshed in the
//! background (`link/list_refresh.rs`).
//!
//! Invariant: nothing here knows agent sessions, endpoints or how names of many servers are shown
//! together, but for the one name of each thing.
//!
//! Start at [`forward::forward`] and [`link::Link`].

mod annotations;
mod backoff;
pub mod channel;
pub mod era;
pub mod event_buffer;
pub mod failure;
pub mod forward;
#[cfg(fuzzing)]
pub mod fuzz;
mod imitation;
mod label;
pub mod link;
pub mod list_cache;
mod listed;
pub mod lists;
pub mod log_level;
pub mod log_limit;
pub mod metrics;
pub mod names;
pub mod relay;
pub mod reply;
pub mod resubscribe;
pub mod rewrite;
mod shown;
pub mod tasks;

pub use listed::class_of_definition;
