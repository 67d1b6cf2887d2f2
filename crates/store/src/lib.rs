//! The store: admits calls, counts them, and records each call before it is sent.
//!
//! Start reading at [`Store`], which is the whole contract, then [`Permit`]. [`Engine`] is its only
//! implementation: a writer that commits waiting jobs in groups. Databases differ only in their
//! [`Backend`]; [`MemoryBackend`] is the simplest one.
//!
//! Invariant: a call is admitted only after it is recorded. A [`Permit`] exists only after its
//! intent row is committed together with every counter of the call.
//! Invariant: no clock. Time is an argument; for counters it never runs backwards.

mod admit;
mod approval;
pub mod backend;
mod completion;
mod engine;
mod error;
pub mod failpoint;
mod memory;
mod permit;
mod reply;
mod row_query;
mod setup;
mod store;
#[cfg(any(test, feature = "suite"))]
pub mod suite;
mod sync;

pub use admit::{
    AdmitOutcome, AdmitRequest, Decide, ReadUsage, RoundKind, StoreActivity, StoreStatus,
};
pub use approval::{
    Answer, ApprovalQuery, DueNotice, HeldCall, HoldRequest, IsValid, KEPT_APPROVALS, LISTED_BYTES,
    MAX_PENDING, MAX_PENDING_BYTES, PendingApprovals, StandingException, StoredApproval,
};
pub use backend::{Backend, SyncLag};
pub use completion::{Completion, Settled};
pub use engine::{CheckpointSchedule, Engine, EngineSettings, OnCheckpoint};
pub use error::{ChangeError, NotAudited, NotReadable, StoreError, StoreErrorKind};
pub use memory::MemoryBackend;
pub use permit::{Admitted, Permit, Ticket};
pub use row_query::{MAX_ROWS, RowQuery};
pub use setup::{
    Change, Document, Freeze, FreezeTarget, GrantUse, PolicyVersion, SETUP_SPACES, Snapshot,
    StoredGrant, StoredPerson,
};
pub use store::Store;
