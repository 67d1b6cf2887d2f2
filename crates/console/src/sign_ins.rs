//! Who is signed in.
//!
//! A sign-in remembers the SHA-256 of the person's token, never the token. It is looked up among the
//! valid tokens with every request, so it ends when the token is revoked, rotated or expires.
//!
//! Invariant: a sign-in ends after 12 hours, and after 1 hour without a request.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use toolgate_audit::Hash;

use crate::flash::Flash;

/// How long a sign-in lasts.
pub(crate) const LIFETIME: SignedDuration = SignedDuration::from_hours(12);
/// How long it lasts without a request.
pub(crate) const IDLE: SignedDuration = SignedDuration::from_hours(1);
/// How many sign-ins one token may have; the least recently used gives way.
const MAX_OF_ONE: usize = 32;
/// How many there may be in all.
const MAX: usize = 1_024;

/// All sign-ins, by the SHA-256 of their cookies.
#[derive(Debug, Default)]
pub(crate) struct SignIns(HashMap<Hash, SignIn>);

/// One sign-in.
#[derive(Debug, Clone)]
pub(crate) struct SignIn {
    /// The SHA-256 of the person's token.
    pub(crate) token: Hash,
    /// What every form must carry.
    pub(crate) csrf: String,
    created: Timestamp,
    used: Timestamp,
    flash: Option<Flash>,
}

impl SignIns {
    /// Adds a sign-in for this cookie.
    pub(crate) fn add(&mut self, cookie: Hash, token: Hash, csrf: String, now: Timestamp) {
        self.0.retain(|_, known| known.is_valid(now));
        let of_token = self.0.values().filter(|known| known.token == token).count();
        if of_token >= MAX_OF_ONE {
            self.remove_oldest(|known| known.token == token);
        } else if self.0.len() >= MAX {
            self.remove_oldest(|_| true);
        }
        self.0.insert(cookie, SignIn { token, csrf, created: now, used: now, flash: None });
    }

    /// The sign-in of a cookie; this is a use of it.
    pub(crate) fn touch(&mut self, cookie: &Hash, now: Timestamp) -> Option<SignIn> {
        let known = self.0.get_mut(cookie)?;
        if !known.is_valid(now) {
            self.0.remove(cookie);
            return None;
        }
        known.used = now;
        Some(known.clone())
    }

    /// The sign-in of a cookie; this is no use of it.
    pub(crate) fn look(&self, cookie: &Hash, now: Timestamp) -> Option<SignIn> {
        self.0.get(cookie).filter(|known| known.is_valid(now)).cloned()
    }

    /// Ends a sign-in.
    pub(crate) fn end(&mut self, cookie: &Hash) {
        self.0.remove(cookie);
    }

    /// Keeps a message for the next page.
    pub(crate) fn set_flash(&mut self, cookie: &Hash, flash: Flash) {
        if let Some(known) = self.0.get_mut(cookie) {
            known.flash = Some(flash);
        }
    }

    /// The message for this page, once.
    pub(crate) fn take_flash(&mut self, cookie: &Hash) -> Option<Flash> {
        self.0.get_mut(cookie)?.flash.take()
    }

    fn remove_oldest(&mut self, which: impl Fn(&SignIn) -> bool) {
        let among = self.0.iter().filter(|(_, known)| which(known));
        let oldest = among.min_by_key(|(_, known)| known.used).map(|(cookie, _)| *cookie);
        if let Some(oldest) = oldest {
            self.0.remove(&oldest);
        }
    }
}

impl SignIn {
    fn is_valid(&self, now: Timestamp) -> bool {
        now < self.created + LIFETIME && now < self.used + IDLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes)
    }

    fn hash(text: &str) -> Hash {
        Hash::of(text.as_bytes())
    }

    fn signed_in(cookie: &str) -> SignIns {
        let mut all = SignIns::default();
        all.add(hash(cookie), hash("token"), "csrf".to_owned(), at(0));
        all
    }

    #[test]
    fn a_sign_in_ends_after_an_hour_without_use() {
        let mut all = signed_in("a");
        assert!(all.touch(&hash("a"), at(59)).is_some());
        assert!(all.touch(&hash("a"), at(118)).is_some());
        assert!(all.look(&hash("a"), at(177)).is_some(), "looking is no use");
        assert!(all.look(&hash("a"), at(178)).is_none());
        assert!(all.touch(&hash("a"), at(178)).is_none());
        assert!(all.touch(&hash("a"), at(118)).is_none(), "it does not come back");
    }

    #[test]
    fn a_sign_in_ends_after_twelve_hours_of_use() {
        let mut all = signed_in("a");
        for minute in (0..720).step_by(30) {
            assert!(all.touch(&hash("a"), at(minute)).is_some(), "{minute}");
        }
        assert!(all.touch(&hash("a"), at(720)).is_none());
    }

    #[test]
    fn a_cookie_that_was_ended_or_never_made_is_unknown() {
        let mut all = signed_in("a");
        assert!(all.touch(&hash("b"), at(1)).is_none());
        all.end(&hash("a"));
        assert!(all.touch(&hash("a"), at(1)).is_none());
    }

    #[test]
    fn the_sign_ins_of_one_token_are_bounded() {
        let mut all = SignIns::default();
        for n in 0..=MAX_OF_ONE {
            let minute = i64::try_from(n).unwrap();
            all.add(hash(&n.to_string()), hash("token"), String::new(), at(0));
            all.touch(&hash(&n.to_string()), at(minute));
        }
        assert!(all.touch(&hash("0"), at(40)).is_none());
        assert!(all.touch(&hash("1"), at(40)).is_some());
    }

    #[test]
    fn a_message_is_shown_once() {
        let mut all = signed_in("a");
        all.set_flash(&hash("a"), Flash::done("saved".to_owned()));
        assert!(all.take_flash(&hash("a")).is_some());
        assert!(all.take_flash(&hash("a")).is_none());
    }
}
