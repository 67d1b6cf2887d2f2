//! The store: admits calls, counts them, and writes them down first.
//!
//! Start reading at [`Store`], which is the whole contract, then [`Permit`]. [`Engine`] is the one
//! implementation of it: a writer thread that groups what waits into one transaction. What differs
//! between databases is behind [`Backend`]; [`MemoryBackend`] is the simplest one.
//!
//! Invariant: nothing is admitted that is not written. A [`Permit`] exists only after its intent
//! row is committed together with every counter of the call.
//! Invariant: no clock. Time is an argument; it never runs backwards for counters.

mod admit;
pub mod backend;
mod completion;
mod engine;
mod error;
pub mod failpoint;
mod memory;
mod permit;
mod reply;
mod setup;
mod store;
#[cfg(any(test, feature = "suite"))]
pub mod suite;
mod sync;

pub use admit::{AdmitOutcome, AdmitRequest, Decide, ReadUsage, Round, RowQuery, StoreStatus};
pub use backend::Backend;
pub use completion::{Completion, Settled};
pub use engine::{CheckpointSchedule, Engine, EngineSettings, OnCheckpoint};
pub use error::{ChangeError, NotAudited, NotReadable, StoreError, StoreErrorKind};
pub use memory::MemoryBackend;
pub use permit::{Admitted, Permit, Ticket};
pub use setup::{
    Change, Document, Freeze, FreezeTarget, PolicyVersion, SETUP_SPACES, Snapshot, StoredGrant,
    StoredPerson,
};
pub use store::Store;
