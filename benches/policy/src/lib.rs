//! What the policy engine is measured with: documents, one call, and the same six conditions for
//! the engines it is compared with.
//!
//! Nothing here is part of the product. Start at `bin/beside.rs` and `bin/alone.rs` for times, at `benches/instructions.rs`
//! for instruction counts.

#![forbid(unsafe_code)]

pub mod clock;
pub mod documents;
#[cfg(feature = "rivals")]
pub mod rivals;

use jiff::Timestamp;
use toolgate_policy::{Call, Class, Effect, Known, Policy, UNUSED, Verdict, decide};

/// The call that every engine decides; all six conditions hold.
pub const ARGUMENTS: &str = r#"{"amount":420,"currency":"EUR","customer":{"id":"cus_9f3a","country":"DE","name":"Müller GmbH"},"reason":"invoice 2026-117","attachment":"invoice-2026-117.pdf","lines":[{"sku":"A-1","count":2},{"sku":"B-7","count":1}]}"#;
/// The same, with an amount above the cap.
pub const TOO_MUCH: &str = r#"{"amount":20000,"currency":"EUR","customer":{"id":"cus_9f3a","country":"DE","name":"Müller GmbH"},"reason":"invoice 2026-117","attachment":"invoice-2026-117.pdf","lines":[{"sku":"A-1","count":2},{"sku":"B-7","count":1}]}"#;

/// Our engine with one document, ready to decide.
pub struct Ours {
    policy: Policy,
    now: Timestamp,
}

impl Ours {
    /// Compiles a document that must be good.
    pub fn new(document: &str) -> Self {
        let loaded = Policy::load("bench", document, &Known::default());
        let policy = loaded.policy.unwrap_or_else(|| panic!("{:?}", loaded.problems));
        Self { policy, now: Timestamp::from_second(1_767_614_430).unwrap_or_default() }
    }

    /// Decides a call whose arguments are raw JSON, as they come off the wire.
    pub fn verdict(&self, tool: &str, arguments: &str) -> Verdict {
        decide(
            &self.policy,
            &Call::new("pay", tool, Class::Financial, arguments),
            &UNUSED,
            self.now,
        )
    }

    /// Whether the call may go on.
    pub fn allows(&self, tool: &str, arguments: &str) -> bool {
        self.verdict(tool, arguments).effect == Effect::Allow
    }
}
