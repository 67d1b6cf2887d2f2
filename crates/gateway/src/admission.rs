//! Admission: whose a request is, what it may do, and what lets it through.
//!
//! Grants and policies in force (`access.rs`), the decision that counts and records a call
//! (`admit.rs`), the look at it again before it is written (`recheck.rs`), and the clearance that a
//! message must have to be written at all (`clearance.rs`).
//!
//! Invariant: nothing here knows servers, agents' streams or transports.
//!
//! Start at [`admit::Admission::admit`] and [`clearance::Clearance`].

pub(crate) mod access;
pub(crate) mod admit;
pub(crate) mod barred;
pub(crate) mod caller;
pub(crate) mod clearance;
pub(crate) mod denials;
pub(crate) mod environment;
pub(crate) mod expects;
pub(crate) mod foresee;
pub(crate) mod list_kind;
pub(crate) mod multi_round;
pub(crate) mod recheck;
pub(crate) mod refused;
pub(crate) mod reserved;
pub(crate) mod sealed_token;
pub(crate) mod store_timeout;
pub(crate) mod task_book;
pub(crate) mod task_call;
pub(crate) mod turns;
pub(crate) mod wanted;
