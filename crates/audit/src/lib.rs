//! The audit: content of rows, hash chain, checkpoints, verification, recording of arguments, and
//! coalescing of repeated denials.
//!
//! A [`Draft`] is a row to be written; [`ChainHead::seal`] appends it to the chain and returns a
//! [`Row`]. [`Verifier`] checks stored rows and reports the first bad one.
//!
//! Invariant: pure. No clock, no files, no randomness; time and keys are arguments.
//! Invariant: the canonical form of a row never changes for a given version (`canonical.rs`).
//!
//! Start reading at [`Draft`], then `canonical`, `chain`, `verify`.

mod arguments;
mod auth_failures;
mod canonical;
mod chain;
mod checkpoint;
mod coalesce;
mod durability;
mod error_code;
mod id;
mod row;
mod truncate;
mod verify;
mod vocabulary;

pub use arguments::{ArgumentHashKey, ArgumentMode, FactPath, RecordedArguments, record_arguments};
pub use auth_failures::{AuthFailure, AuthFailureCounter};
pub use canonical::VERSION;
pub use chain::ChainHead;
pub use checkpoint::{Checkpoint, PublicKey, Signer};
pub use coalesce::{Coalesced, Coalescer};
pub use durability::Durability;
pub use error_code::{ERROR_CODES, ErrorCode};
pub use id::{CallId, Hash, NotHex};
pub use row::{CounterChange, Draft, ROW_FIELDS, Row};
pub use truncate::{MAX_TEXT, truncate};
pub use verify::{BadRow, Defect, Undecodable, Verifier, VerifyReport};
pub use vocabulary::{Decision, Effect, Outcome, RowKind, UnknownValue};
