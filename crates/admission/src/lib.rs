//! Admission: which grant a request belongs to, what it may do, and the pipeline of an admitted call.
//!
//! Active grants and policies (`access.rs`), the decision that counts and records a call
//! (`admit.rs`), the path of every call from its admission to its outcome (`pipeline.rs`), the check
//! immediately before a call is written (`recheck.rs`), and the clearance without which no message
//! is written (`clearance.rs`).
//!
//! Invariant: nothing here depends on servers, agents' streams or transports.
//!
//! Start at [`pipeline::run`], [`admit::Admission::admit`] and [`clearance::Clearance`].

pub mod access;
pub mod admit;
pub mod answer_kind;
mod audited_call;
pub mod auth_failures;
pub mod call_context;
pub mod call_request;
pub mod caller;
pub mod clearance;
pub mod contained;
pub mod delegation;
pub mod describe;
pub mod ended;
pub mod environment;
mod fair_queue;
mod hold_room;
pub mod holds;
mod in_band;
pub mod list_kind;
pub mod metrics;
pub mod multi_round;
pub mod pipeline;
pub mod recheck;
pub mod refused;
pub mod reserved;
pub mod sealed_token;
pub mod start_denied;
pub mod store_timeout;
pub mod task_book;
pub mod task_call;
pub mod user_question;
