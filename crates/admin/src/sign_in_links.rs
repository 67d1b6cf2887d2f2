//! One-time links that sign a person in to the console.
//!
//! Invariant: a link works once, for 60 seconds, and only as long as the token of its person does.

use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use toolgate_audit::Hash;

/// How long a link works.
pub(crate) const LIFETIME: SignedDuration = SignedDuration::from_secs(60);
/// How many there may be at once; the oldest gives way.
const MAX: usize = 64;

/// Links in use.
#[derive(Debug, Default)]
pub(crate) struct SignInLinks(Mutex<Vec<SignInLink>>);

#[derive(Debug)]
struct SignInLink {
    /// The SHA-256 of its code.
    code: Hash,
    /// The SHA-256 of the person's token.
    token: Hash,
    expires: Timestamp,
}

impl SignInLinks {
    /// Adds one; expired ones are removed.
    pub(crate) fn add(&self, code: &str, token: Hash, now: Timestamp) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| now < known.expires);
        if all.len() >= MAX {
            all.remove(0);
        }
        all.push(SignInLink { code: Hash::of(code.as_bytes()), token, expires: now + LIFETIME });
    }

    /// The token behind a code; the code stays valid.
    pub(crate) fn find(&self, code: &str, now: Timestamp) -> Option<Hash> {
        let code = Hash::of(code.as_bytes());
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|known| known.code == code && now < known.expires).map(|known| known.token)
    }

    /// The token behind a code, once.
    pub(crate) fn take(&self, code: &str, now: Timestamp) -> Option<Hash> {
        let code = Hash::of(code.as_bytes());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = all.iter().position(|known| known.code == code)?;
        let link = all.remove(place);
        (now < link.expires).then_some(link.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    #[test]
    fn a_link_works_once_and_for_a_minute() {
        let (links, token) = (SignInLinks::default(), Hash::of(b"token"));
        links.add("a", token, at(0));
        links.add("b", token, at(0));
        assert_eq!(links.find("a", at(59)), Some(token));
        assert_eq!(links.take("a", at(59)), Some(token));
        assert_eq!((links.find("a", at(59)), links.take("a", at(59))), (None, None));
        assert_eq!((links.find("b", at(60)), links.take("b", at(60))), (None, None));
    }

    #[test]
    fn the_oldest_gives_way() {
        let links = SignInLinks::default();
        for n in 0..=MAX {
            links.add(&n.to_string(), Hash::of(b"token"), at(0));
        }
        assert!(links.find("0", at(0)).is_none() && links.find("1", at(0)).is_some());
    }
}
