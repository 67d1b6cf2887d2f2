//! The verdict of a policy on a call, with the rules that led to it and the counters to take.

use std::sync::Arc;

use serde::Serialize;
use smallvec::SmallVec;

use crate::{Amount, Period, Window};

/// The effect of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// May be sent, once every reservation is taken.
    Allow,
    /// Waits for a person.
    Hold,
    /// Refused; the tool stays listed.
    Deny,
    /// Refused, and the tool is not listed.
    Hide,
}

/// The `error_code` of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// Denied or hidden.
    PolicyDenied,
    /// A limit is spent.
    RateLimited,
}

impl Refusal {
    /// As in `_meta.error_code`.
    pub fn as_str(self) -> &'static str {
        match self {
            Refusal::PolicyDenied => "policy_denied",
            Refusal::RateLimited => "rate_limited",
        }
    }
}

/// The decision on one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What happens.
    pub effect: Effect,
    /// The error code, for a refusal.
    pub refusal: Option<Refusal>,
    /// The rule that decided; none for a plain allow.
    pub rule: Option<Arc<str>>,
    /// Text for the model: what, why, whether to retry and when. Empty for an allow.
    pub message: String,
    /// Seconds after which the same call may pass.
    pub retry_after: Option<u64>,
    /// Every rule that took part, in the order reasons are named.
    pub rules: SmallVec<[Contribution; 4]>,
    /// What admission must take, all of it or nothing.
    pub reservations: Vec<Reservation>,
    /// How to ask, when the call is held.
    pub hold: Option<Box<Hold>>,
    /// What lifted a hold, when one was lifted.
    pub lifted: Option<Lifted>,
    /// The effect of rules in shadow, if it is stricter.
    pub shadow: Option<Box<Shadowed>>,
}

/// One rule's part in a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contribution {
    /// A JSON pointer, or a name in parentheses.
    pub rule: Arc<str>,
    /// Its effect.
    pub effect: Effect,
    /// It is in shadow: recorded, not enforced.
    pub shadow: bool,
}

/// A verdict that was not enforced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shadowed {
    /// What would have happened.
    pub effect: Effect,
    /// With which error code.
    pub refusal: Option<Refusal>,
    /// By which rule.
    pub rule: Arc<str>,
}

/// How a held call asks for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The rule that holds.
    pub rule: Arc<str>,
    /// How long the agent's request waits; `None` if it does not wait.
    pub wait: Option<Window>,
    /// How long the approval can be answered.
    pub expires: Window,
    /// Groups that may answer; if empty and `no_common_group` is false, every approver may.
    pub approvers: Vec<String>,
    /// The rules name groups that have no person in common, so no person may answer.
    pub no_common_group: bool,
    /// How many different people must agree.
    pub people: u32,
    /// What to tell them.
    pub note: Option<String>,
}

/// Why a hold was lifted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lifted {
    /// A person approved this very call; admission consumes the approval.
    Approval,
    /// A standing exception, by id.
    Exception(String),
}

/// One counter to take in the admitting transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The rule it comes from.
    pub rule: Arc<str>,
    /// The counter's name for people.
    pub counter: String,
    /// The counter's whole identity: policy, entry, name, scope value, window.
    pub key: String,
    /// What to take.
    pub take: Take,
    /// `false` in shadow: take it if it fits, and never refuse.
    pub enforced: bool,
}

/// What a reservation takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Take {
    /// Add to the count of a calendar window.
    Calendar {
        /// The window.
        period: Period,
        /// How much this call adds.
        amount: Amount,
        /// How much the window holds.
        max: Amount,
    },
    /// Add to a sliding log.
    Sliding {
        /// Its length.
        window: Window,
        /// How much this call adds.
        amount: Amount,
        /// How much any window holds.
        max: Amount,
    },
    /// One more call in flight, until its outcome.
    InFlight {
        /// How many there may be.
        max: u64,
    },
    /// Remember that this call was admitted.
    Seen {
        /// How long that matters.
        within: Window,
    },
}

impl Verdict {
    /// The verdict on a call whose grant has no policy.
    pub fn no_policy(tool: &str) -> Self {
        let message = format!(
            "the tool `{tool}` is not permitted: this grant has no policy; do not retry, ask the operator"
        );
        Self::refused(Effect::Deny, "(no policy)".into(), message)
    }

    pub(crate) fn refused(effect: Effect, rule: Arc<str>, message: String) -> Self {
        let contribution = Contribution { rule: Arc::clone(&rule), effect, shadow: false };
        Self {
            effect,
            refusal: Some(Refusal::PolicyDenied),
            rule: Some(rule),
            message,
            rules: SmallVec::from_iter([contribution]),
            ..Self::allowed()
        }
    }

    pub(crate) fn allowed() -> Self {
        Self {
            effect: Effect::Allow,
            refusal: None,
            rule: None,
            message: String::new(),
            retry_after: None,
            rules: SmallVec::new(),
            reservations: Vec::new(),
            hold: None,
            lifted: None,
            shadow: None,
        }
    }
}
