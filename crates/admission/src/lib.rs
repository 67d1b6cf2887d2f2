//! Admission: whose a request is, what it may do, and what lets it through.
//!
//! Grants and policies in force (`access.rs`), the decision that counts and records a call
//! (`admit.rs`), the look at it again before it is written (`recheck.rs`), and the clearance that a
//! message must have to be written at all (`clearance.rs`).
//!
//! Invariant: nothing here knows servers, agents' streams or transports.
//!
//! Start at [`admit::Admission::admit`] and [`clearance::Clearance`].

pub mod access;
pub mod admit;
pub mod barred;
pub mod caller;
pub mod clearance;
pub mod denials;
pub mod environment;
pub mod expects;
mod foresee;
pub mod list_kind;
pub mod multi_round;
pub mod recheck;
pub mod refused;
pub mod reserved;
pub mod sealed_token;
pub mod store_timeout;
pub mod task_book;
pub mod task_call;
mod turns;
pub mod wanted;
