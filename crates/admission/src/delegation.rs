//! Delegations: a person calls with the rights of a grant, for a short time.
//!
//! `toolgate tool --as GRANT` gets a token of its own for a grant whose token it does not know. Calls
//! are decided and counted as those of the grant, and recorded with the person.
//!
//! Invariant: a delegation never allows more than its grant does at the moment of the request, and
//! ends with it.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use toolgate_audit::Hash;

/// How many there may be at once; the oldest gives way.
const MAX: usize = 64;

/// Delegations in use.
#[derive(Debug, Default)]
pub struct Delegations(Mutex<Vec<Delegation>>);

/// One delegation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delegation {
    /// The SHA-256 of its token.
    pub token: Hash,
    /// The label of the grant.
    pub grant: Arc<str>,
    /// The person who calls.
    pub person: Arc<str>,
    /// When its token expires.
    pub expires: Timestamp,
}

impl Delegations {
    /// Adds one; expired ones are removed.
    pub fn add(&self, delegation: Delegation, now: Timestamp) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| now < known.expires);
        if all.len() >= MAX {
            all.remove(0);
        }
        all.push(delegation);
    }

    /// The one with this token.
    pub(crate) fn find(&self, token: &str, now: Timestamp) -> Option<Delegation> {
        let hash = Hash::of(token.as_bytes());
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|known| known.token == hash && now < known.expires).cloned()
    }

    /// Ends those of a person whose token was revoked or replaced.
    pub fn end_of(&self, person: &str) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|known| &*known.person != person);
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn delegation(token: &str, person: &str, seconds: i64) -> Delegation {
        let expires = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
        Delegation {
            token: Hash::of(token.as_bytes()),
            grant: "laptop".into(),
            person: person.into(),
            expires,
        }
    }

    #[test]
    fn a_delegation_ends_with_its_time_and_its_person() {
        let (all, now) = (Delegations::default(), Timestamp::UNIX_EPOCH);
        all.add(delegation("a", "duty", 10), now);
        all.add(delegation("b", "admin", 20), now);
        assert!(all.find("a", now).is_some() && all.find("c", now).is_none());
        let later = now + SignedDuration::from_secs(10);
        assert!(all.find("a", later).is_none() && all.find("b", later).is_some());
        all.end_of("admin");
        assert!(all.find("b", later).is_none());
    }

    #[test]
    fn the_oldest_gives_way() {
        let (all, now) = (Delegations::default(), Timestamp::UNIX_EPOCH);
        for n in 0..=MAX {
            all.add(delegation(&n.to_string(), "admin", 10), now);
        }
        assert!(all.find("0", now).is_none() && all.find("1", now).is_some());
    }
}
