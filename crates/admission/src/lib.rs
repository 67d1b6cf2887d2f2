//! Admission: whose a request is, what it may do, and the pipeline of an admitted call.
//!
//! Grants and policies in force (`access.rs`), the decision that counts and records a call
//! (`admit.rs`), the path of every call from its admission to its outcome (`pipeline.rs`), the check
//! immediately before a call is written (`recheck.rs`), and the clearance without which no message
//! is written (`clearance.rs`).
//!
//! Invariant: nothing here knows servers, agents' streams or transports.
//!
//! Start at [`pipeline::run`], [`admit::Admission::admit`] and [`clearance::Clearance`].

pub mod access;
pub mod admit;
pub mod barred;
pub mod call_request;
pub mod caller;
pub mod clearance;
pub mod contained;
pub mod denials;
pub mod ended;
pub mod environment;
pub mod expects;
mod foresee;
pub mod list_kind;
pub mod multi_round;
pub mod pipeline;
pub mod recheck;
pub mod refused;
pub mod reserved;
pub mod sealed_token;
pub mod store_timeout;
pub mod task_book;
pub mod task_call;
mod turns;
pub mod wanted;
