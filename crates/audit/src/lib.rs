//! The audit: what a row holds, how rows are chained, signed and verified, what of a call's
//! arguments is written, and how a storm of denials becomes few rows.
//!
//! A [`Draft`] is what somebody wants written; [`Head::seal`] gives it its place in the chain and
//! makes a [`Row`]. [`Verifier`] reads rows back and names the first bad one.
//!
//! Invariant: pure. No clock, no files, no randomness; time and keys are arguments.
//! Invariant: the canonical form of a row never changes for a given version (`canonical.rs`).
//!
//! Start reading at [`Draft`], then `canonical`, `chain`, `verify`.

mod arguments;
mod canonical;
mod chain;
mod checkpoint;
mod coalesce;
mod cut;
mod id;
mod refusals;
mod row;
mod verify;
mod word;

pub use arguments::{ArgumentMode, Arguments, FactPath, Secret, record_arguments};
pub use canonical::VERSION;
pub use chain::Head;
pub use checkpoint::{Checkpoint, PublicKey, Signer};
pub use coalesce::{Coalesced, Coalescer};
pub use cut::{TEXT, cut};
pub use id::{CallId, Hash, NotHex};
pub use refusals::{Refusal, Refusals};
pub use row::{CounterChange, Draft, Row};
pub use verify::{Bad, Found, Report, Undecodable, Verifier};
pub use word::{Decision, Effect, Kind, Outcome, UnknownWord};
