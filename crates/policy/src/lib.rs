//! The policy engine: parses the policy language, reports every problem, decides calls, explains.
//!
//! [`Policy::load`] turns a text into problems and, if none is an error, a [`Policy`]. [`decide`] takes
//! the policy, a [`Call`], the current [`Usage`] and the time, and returns a [`Verdict`].
//!
//! Invariant: pure. No clock, no files, no environment, no randomness; time and usage are
//! arguments, and the same input gives the same verdict, byte for byte.
//! Invariant: fail closed. A call that cannot be decided is denied; a document that cannot be parsed is
//! rejected.
//! Invariant: comparisons never round; one whose result depends on rounding denies.
//!
//! Start reading at [`decide`], then `truth` (conditions), `limit` (counters), `lower` (parsing).

mod approval;
mod budget;
mod call;
mod choices;
mod code;
mod decide;
mod digest;
mod edit;
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
mod kept;
mod known;
mod ledger;
mod limit;
mod lint;
mod lower;
mod model;
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
mod syntax;
mod terms;
mod truth;
mod uri;
mod usage;
mod verdict;
mod window;

pub use approval::{
    Answerer, ApprovalState, Binding, MayNotAnswer, Question, REQUESTER, drawn_arguments,
};
pub use call::{Approval, Call, Identity, SessionFacts};
pub use code::{Code, Severity};
pub use decide::{
    Examined, conclude, decide, examine, is_call_hidden, is_hidden, is_listed, may_hold,
};
pub use digest::{Digest, argument_digest};
pub use edit::{NotEdited, add_item, document_json, remove_item, set_member};
pub use explain::{ExplainedRule, Explanation, LimitState, RuleLines, explain, limits, locate};
pub use format::format;
pub use glob::{Glob, GlobError};
pub use import::{Imported, import_intercept};
pub use kept::{CannotKeep, Kept};
pub use known::{Known, KnownTool};
pub use ledger::{Ledger, NoRoom, Ownership, Receipt};
pub use lower::METHODS_WITHOUT_PERMISSION;
pub use number::{Amount, AmountError};
pub use ownership::{Ended, Outcome, Yielded};
pub use policy::{Loaded, Policy};
pub use problem::{Problem, similar};
pub use recommended::RECOMMENDED;
pub use scenario::{TestReport, TestResult};
pub use schema::json_schema;
pub use syntax::MAX_BYTES;
pub use terms::terms;
pub use toolgate_catalog::{Class, draw};
pub use toolgate_yaml::Span;
pub use uri::normal_uri;
pub use usage::{
    Claim, Counted, Excepting, Exception, ExceptionFacts, Taken, UNUSED, Unavailable, Usage,
};
pub use verdict::{
    Contribution, Effect, Hold, Lifted, Refusal, Reservation, Shadowed, Take, Verdict,
};
pub use window::{Period, Window};
