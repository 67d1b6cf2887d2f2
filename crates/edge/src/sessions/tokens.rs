//! Tokens in the path of a socket.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use toolgate_session::{Glob, SocketToken};

/// A token that lets programs connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownToken {
    hash: [u8; 32],
    token: Arc<SocketToken>,
}

/// All tokens; without any, every program may connect.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tokens(Vec<KnownToken>);

impl KnownToken {
    /// A token by its SHA-256, with its bounds: kinds, infobases, uids.
    pub fn new(
        hash: [u8; 32],
        kinds: Option<Vec<Glob>>,
        infobases: Option<Vec<Glob>>,
        uids: Option<Vec<Glob>>,
    ) -> Self {
        let [a, b, c, d, ..] = hash;
        let id = Some(u32::from_be_bytes([a, b, c, d]));
        Self { hash, token: Arc::new(SocketToken { id, kinds, infobases, uids }) }
    }
}

impl Tokens {
    /// The configured tokens.
    pub fn new(tokens: Vec<KnownToken>) -> Self {
        Self(tokens)
    }

    /// The bounds of a socket with this token; `None` if the token is unknown.
    pub(super) fn admit(&self, given: &str) -> Option<Arc<SocketToken>> {
        if self.0.is_empty() {
            return Some(Arc::default());
        }
        let given: [u8; 32] = Sha256::digest(given.as_bytes()).into();
        let mut found = None;
        // Compares all tokens completely, so that timing reveals nothing.
        for known in &self.0 {
            let differences = known.hash.iter().zip(&given).fold(0, |sum, (a, b)| sum | (a ^ b));
            if differences == 0 {
                found = Some(Arc::clone(&known.token));
            }
        }
        found
    }

    /// The tokens of `self` that are missing or different in `newer`; `None` stands for no token.
    pub(super) fn revoked(&self, newer: &Self) -> Vec<Option<u32>> {
        if self.0.is_empty() {
            return if newer.0.is_empty() { Vec::new() } else { vec![None] };
        }
        let gone = self.0.iter().filter(|known| !newer.0.contains(known));
        gone.map(|known| known.token.id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(word: &str) -> KnownToken {
        KnownToken::new(Sha256::digest(word).into(), None, None, None)
    }

    #[test]
    fn only_a_valid_token_is_accepted() {
        let open = Tokens::default();
        assert_eq!(open.admit("").unwrap().id, None);
        assert_eq!(open.admit("whatever").unwrap().id, None);
        let tokens = Tokens::new(vec![token("one"), token("two")]);
        assert!(tokens.admit("").is_none());
        assert!(tokens.admit("One").is_none());
        let (one, two) = (tokens.admit("one").unwrap(), tokens.admit("two").unwrap());
        assert!(one.id.is_some() && two.id.is_some() && one.id != two.id);
    }

    #[test]
    fn removed_tokens_are_reported() {
        let (none, one) = (Tokens::default(), Tokens::new(vec![token("one")]));
        let both = Tokens::new(vec![token("one"), token("two")]);
        assert_eq!(none.revoked(&none), []);
        assert_eq!(none.revoked(&one), [None]);
        assert_eq!(one.revoked(&both), []);
        assert_eq!(both.revoked(&one), [both.admit("two").unwrap().id]);
        let bound = KnownToken::new(
            Sha256::digest("one").into(),
            Some(vec![Glob::lenient("server")]),
            None,
            None,
        );
        assert_eq!(one.revoked(&Tokens::new(vec![bound])).len(), 1, "other bounds, another token");
    }
}
