//! Digests: of a call's arguments, and of policies.

use std::fmt;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use toolgate_json::{NotCanonical, canonical};

/// SHA-256 over canonical JSON.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

/// The digest of a call's arguments (`{}` if it has none).
pub fn argument_digest(arguments: &str) -> Result<Digest, NotCanonical> {
    canonical(arguments).map(|text| Digest::of(text.as_bytes()))
}

impl Digest {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        HEXLOWER.encode_display(&self.0).fmt(f)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::argument_digest;

    #[test]
    fn the_digest_is_over_the_canonical_form() {
        let digest = argument_digest("{}").unwrap().to_string();
        assert_eq!(digest, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
        assert_eq!(argument_digest(r#"{"b":1,"a":2}"#), argument_digest(r#"{ "a":2, "b":1 }"#));
        assert_ne!(argument_digest(r#"{"a":1}"#), argument_digest(r#"{"a":1.0}"#));
    }
}
