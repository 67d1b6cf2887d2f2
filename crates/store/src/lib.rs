//! The store: admits calls, counts them, and writes them down first.
//!
//! Start reading at [`Store`], which is the whole contract, then [`Permit`]. [`Engine`] is the one
//! implementation of it: a writer thread that groups what waits into one transaction. What differs
//! between databases is behind [`Backend`]; [`Memory`] is the simplest one.
//!
//! Invariant: nothing is admitted that is not written. A [`Permit`] exists only after its intent
//! row is committed together with every counter of the call.
//! Invariant: no clock. Time is an argument; it never runs backwards for counters.

mod admission;
pub mod backend;
mod ending;
mod engine;
pub mod failpoint;
mod fault;
mod memory;
mod permit;
mod reply;
mod store;
#[cfg(any(test, feature = "suite"))]
pub mod suite;
mod sync;
mod things;

pub use admission::{Answer, Asking, Decide, Leg, Look, Page, Status};
pub use backend::Backend;
pub use ending::{Ending, Settled};
pub use engine::{Due, Engine, Settings, Tell};
pub use fault::{ChangeError, Fault, FaultKind, NotAudited, NotReadable};
pub use memory::Memory;
pub use permit::{Admitted, Permit, Ticket};
pub use store::Store;
pub use things::{Change, Freeze, Frozen, Grant, Kept, Person, PolicyVersion, SETUP, Snapshot};
