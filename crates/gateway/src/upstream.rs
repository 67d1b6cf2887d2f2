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

pub(crate) mod annotations;
pub(crate) mod backoff;
pub mod channel;
pub(crate) mod era;
pub mod event_buffer;
pub(crate) mod failure;
pub(crate) mod forward;
pub(crate) mod imitation;
pub(crate) mod label;
pub(crate) mod link;
pub(crate) mod list_cache;
pub(crate) mod listed;
pub(crate) mod lists;
pub(crate) mod log_level;
pub(crate) mod log_limit;
pub(crate) mod metrics;
pub(crate) mod names;
pub(crate) mod relay;
pub(crate) mod resubscribe;
pub(crate) mod rewrite;
pub(crate) mod shown;
pub(crate) mod tasks;
pub(crate) mod withheld;
pub(crate) mod work;
