//! The policy engine: reads the policy language, tells every mistake, decides calls, explains.
//!
//! Text goes through [`Policy::load`] and becomes either problems or a [`Policy`]; [`decide`] takes
//! the policy, a [`Call`], what has been used ([`Usage`]) and the time, and gives a [`Verdict`].
//!
//! Invariant: pure. No clock, no files, no environment, no randomness; time and usage are
//! arguments, and the same input gives the same verdict, byte for byte.
//! Invariant: fail closed. What cannot be decided is denied; what cannot be read is refused.
//! Invariant: no rounding in any comparison; one that comes out differently once readers have rounded
//! denies.
//!
//! Start reading at [`decide`], then `truth` (conditions), `limit` (counters), `lower` (parsing).

mod budget;
mod call;
mod choices;
mod code;
mod decide;
mod digest;
mod explain;
mod format;
#[cfg(fuzzing)]
pub mod fuzz;
mod glob;
mod hash;
mod host;
mod import;
mod index;
mod intercept;
mod json;
mod known;
mod ledger;
mod limit;
mod lint;
mod lower;
mod model;
mod node;
mod number;
mod ownership;
mod path;
mod policy;
mod problem;
mod recommended;
mod scalar;
mod scenario;
mod schema;
mod scope;
mod section;
mod truth;
mod uri;
mod usage;
mod verdict;
mod window;

pub use call::{Approval, Call, Class, Identity, SessionFacts};
pub use code::{Code, Severity};
pub use decide::{Examined, conclude, decide, examine, is_call_hidden, is_hidden};
pub use digest::{Digest, argument_digest};
pub use explain::{ExplainedRule, Explanation, LimitState, explain, limits, locate};
pub use format::format;
pub use glob::Glob;
pub use import::{Imported, import_intercept};
pub use known::{Known, KnownTool};
pub use ledger::{Ledger, NoRoom, Ownership, Receipt};
pub use lower::METHODS_WITHOUT_PERMISSION;
pub use node::MAX_BYTES;
pub use number::{Amount, AmountError};
pub use ownership::{Ended, Outcome, Yielded};
pub use policy::{Loaded, Policy};
pub use problem::{Problem, Span};
pub use recommended::RECOMMENDED;
pub use scenario::{TestReport, TestResult};
pub use schema::json_schema;
pub use uri::normal_uri;
pub use usage::{Claim, Counted, Exception, ExceptionFacts, Taken, UNUSED, Unavailable, Usage};
pub use verdict::{
    Contribution, Effect, Hold, Lifted, Refusal, Reservation, Shadowed, Take, Verdict,
};
pub use window::{Period, Window};
