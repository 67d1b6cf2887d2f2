//! Local mode: whether calls without a token are accepted.
//!
//! It is on until the first grant exists, and that ends it for good. A person can enable it again;
//! then the next new grant ends it again. The store keeps the last decision ([`LocalMode`]); without
//! one, local mode is on as long as no grant has ever existed.
//!
//! Invariant: `local: off` in the file, or a listener that is not on loopback, overrides everything.

use serde::{Deserialize, Serialize};
use toolgate_config::{Config, Listen};
use toolgate_store::{Change, Document};

/// The space of the store in which the decision is kept.
pub const SPACE: &str = "local";
const KEY: &str = "mode";

/// The last decision about local mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LocalMode {
    /// A person enabled it while the file had grants of these labels. Any other label ends it.
    Enabled(Vec<String>),
    /// A grant or a person ended it.
    Ended,
}

/// Local mode, as file and store together determine it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decided {
    /// Calls without a token are accepted.
    pub is_on: bool,
    /// A grant of the file ends it for good: the store must keep that.
    pub ends: bool,
}

impl LocalMode {
    /// Parses the kept decision; one that cannot be parsed ends local mode.
    pub fn parse(json: &str) -> Self {
        serde_json::from_str(json).unwrap_or(Self::Ended)
    }

    /// The change that keeps the decision.
    pub fn keep(&self) -> Change {
        let json = serde_json::to_string(self).unwrap_or_default();
        Change::PutDocument(Document { space: SPACE.into(), key: KEY.into(), json: json.into() })
    }
}

/// Decides local mode. `bound` is where toolgate listens, `kept` the decision in the store, and
/// `has_stored_grants` whether the store has a grant, revoked or not.
pub fn decide(
    config: &Config,
    bound: &Listen,
    kept: Option<&LocalMode>,
    has_stored_grants: bool,
) -> Decided {
    let mut labels = config.grants.iter().map(|grant| &grant.label);
    let ends = match kept {
        None => labels.next().is_some(),
        Some(LocalMode::Enabled(known)) => labels.any(|label| !known.contains(label)),
        Some(LocalMode::Ended) => false,
    };
    let was_on = match kept {
        None => !has_stored_grants,
        Some(LocalMode::Enabled(_)) => true,
        Some(LocalMode::Ended) => false,
    };
    Decided { is_on: may_be_local(config, bound) && was_on && !ends, ends }
}

fn may_be_local(config: &Config, bound: &Listen) -> bool {
    let addresses = [bound.mcp, bound.sessions, bound.admin, bound.metrics];
    config.local && addresses.iter().flatten().all(|address| address.ip().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_config::config;

    const ON: Decided = Decided { is_on: true, ends: false };
    const OFF: Decided = Decided { is_on: false, ends: false };
    const ENDS: Decided = Decided { is_on: false, ends: true };

    fn decided(text: &str, kept: Option<&LocalMode>, has_stored_grants: bool) -> Decided {
        let config = config(text);
        decide(&config, &config.listen, kept, has_stored_grants)
    }

    #[test]
    fn it_is_on_until_the_first_grant_of_either_side() {
        assert_eq!(decided("", None, false), ON);
        assert_eq!(decided("", None, true), OFF, "a stored grant, revoked or not");
        assert_eq!(decided("grants: [{ label: a, token: env:A }]", None, false), ENDS);
    }

    #[test]
    fn an_end_is_for_good() {
        assert_eq!(decided("", Some(&LocalMode::Ended), false), OFF);
        let grants = "grants: [{ label: a, token: env:A }]";
        assert_eq!(decided(grants, Some(&LocalMode::Ended), false), OFF, "kept already");
        assert_eq!(LocalMode::parse("not json"), LocalMode::Ended);
    }

    #[test]
    fn enabled_again_it_lasts_until_the_file_has_another_grant() {
        let enabled = LocalMode::Enabled(vec!["a".to_owned()]);
        assert_eq!(decided("", Some(&enabled), true), ON);
        assert_eq!(decided("grants: [{ label: a, token: env:A }]", Some(&enabled), true), ON);
        assert_eq!(decided("grants: [{ label: b, token: env:B }]", Some(&enabled), true), ENDS);
        let Change::PutDocument(kept) = enabled.keep() else { panic!("it is kept") };
        assert_eq!(LocalMode::parse(&kept.json), enabled);
    }

    #[test]
    fn the_file_and_the_bound_addresses_override_it() {
        let enabled = LocalMode::Enabled(Vec::new());
        assert_eq!(decided("local: off", Some(&enabled), false), OFF);
        let public = config("listen: { mcp: 0.0.0.0:1 }").listen;
        assert_eq!(decide(&config(""), &public, Some(&enabled), false), OFF);
        let loopback = config("").listen;
        assert_eq!(decide(&config("listen: { mcp: 0.0.0.0:1 }"), &loopback, None, false), ON);
    }
}
