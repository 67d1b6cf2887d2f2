//! Whether a definition may be used, and if not, why.
//!
//! Invariant: nothing is recorded here; the same state gives the same verdict.

use std::fmt;
use std::sync::Arc;

use toolgate_policy::Class;

use super::{Facts, PinMode, State};

/// Why a tool is quarantined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// It differs from the definition that may be used.
    Changed,
    /// No person has approved it.
    NotApproved,
    /// It has text that people do not see.
    Hidden(Arc<str>),
    /// It is new, of a dangerous class, on a server that was listed before.
    New(Class),
    /// It is another tool under a new name.
    Renamed(Arc<str>),
    /// Parsers may read it differently.
    Unreadable,
    /// The list has several definitions under this name.
    Ambiguous,
}

impl Reason {
    /// One word for programs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::NotApproved => "not_approved",
            Self::Hidden(_) => "hidden_text",
            Self::New(_) => "new",
            Self::Renamed(_) => "renamed",
            Self::Unreadable => "unreadable",
            Self::Ambiguous => "ambiguous",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed => f.write_str("its definition has changed since it was approved"),
            Self::NotApproved => f.write_str("no person has approved its definition"),
            Self::Hidden(found) => write!(f, "its definition has hidden text ({found})"),
            Self::New(class) => {
                write!(f, "it is new, of class {}, and no person has approved it", class.as_str())
            }
            Self::Renamed(old) => write!(f, "it is the tool `{old}` under a new name"),
            Self::Unreadable => f.write_str("its definition can be read in several ways"),
            Self::Ambiguous => f.write_str("its server lists it twice, with two definitions"),
        }
    }
}

pub(super) fn judge(mode: PinMode, state: &State, own: &str, facts: &Facts) -> Option<Reason> {
    if facts.is_ambiguous && mode != PinMode::Off {
        return Some(Reason::Ambiguous);
    }
    let approved = state.approved.get(own);
    let is_approved = approved.is_some_and(|all| all.iter().any(|pin| pin.is_of(facts)));
    if is_approved {
        return None;
    }
    if let Some(found) = &facts.hidden {
        return Some(Reason::Hidden(Arc::clone(found)));
    }
    if mode == PinMode::Off {
        return None;
    }
    if facts.fingerprint.is_none() {
        return Some(Reason::Unreadable);
    }
    if approved.is_some() {
        return Some(Reason::Changed);
    }
    if mode == PinMode::Strict {
        return Some(Reason::NotApproved);
    }
    match (state.pinned.get(own), state.suspects.get(own)) {
        (Some(pin), _) if pin.is_of(facts) => None,
        (Some(_), _) => Some(Reason::Changed),
        (None, Some((_, reason))) => Some(reason.clone()),
        // A server that was never listed: the definition is about to be recorded.
        (None, None) if !state.is_listed => None,
        (None, None) => Some(Reason::NotApproved),
    }
}
