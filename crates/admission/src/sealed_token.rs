//! Sealed tokens: state that a client keeps and returns, unread and unchanged.
//!
//! Invariant: a token that opens was sealed by a toolgate with the same data folder. Its content must
//! still be compared with the request that returns it.

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hmac;
use data_encoding::HEXLOWER;
use toolgate_audit::ArgumentHashKey;

/// The purpose of tokens that carry a `requestState`; each purpose has its own key.
pub const STATES: &[u8] = b"toolgate requestState 1";
/// The purpose of tokens that name tasks.
pub const TASKS: &[u8] = b"toolgate taskId 1";
/// The purpose of tokens that carry a server's cursor.
pub const CURSORS: &[u8] = b"toolgate cursor 1";

/// Seals and opens tokens.
pub struct Seal(LessSafeKey);

impl Seal {
    /// With a key derived from the secret of the data folder.
    pub fn new(secret: &ArgumentHashKey, purpose: &[u8]) -> Option<Self> {
        let key = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &secret.0), purpose);
        let key = UnboundKey::new(&AES_256_GCM_SIV, key.as_ref()).ok()?;
        Some(Self(LessSafeKey::new(key)))
    }

    /// Seals `plain`. The random bytes are used once, unless equal texts must give equal tokens; this
    /// cipher then reveals only that they are equal.
    pub fn close(&self, plain: &str, random: [u8; 10]) -> Option<String> {
        let mut nonce = [0; NONCE_LEN];
        nonce.iter_mut().zip(random).for_each(|(byte, random)| *byte = random);
        let mut sealed = plain.as_bytes().to_vec();
        let unique = Nonce::assume_unique_for_key(nonce);
        self.0.seal_in_place_append_tag(unique, Aad::empty(), &mut sealed).ok()?;
        let mut text = HEXLOWER.encode(&nonce);
        HEXLOWER.encode_append(&sealed, &mut text);
        Some(text)
    }

    /// The sealed text; `None` if the token was not sealed with this key or was changed.
    pub fn open(&self, sealed: &str) -> Option<String> {
        // One spelling only, so that a used state cannot return under another.
        let mut bytes = HEXLOWER.decode(sealed.as_bytes()).ok()?;
        let (nonce, rest) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let plain = self.0.open_in_place(nonce, Aad::empty(), rest).ok()?;
        String::from_utf8(plain.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_opens_with_its_own_key_and_unchanged() {
        let seal = Seal::new(&ArgumentHashKey([7; 32]), STATES).unwrap();
        let sealed = seal.close("some state", [1; 10]).unwrap();
        assert_eq!(seal.open(&sealed).as_deref(), Some("some state"));
        assert!(!sealed.contains("some"));
        assert_eq!(Seal::new(&ArgumentHashKey([8; 32]), STATES).unwrap().open(&sealed), None);
        assert_eq!(Seal::new(&ArgumentHashKey([7; 32]), TASKS).unwrap().open(&sealed), None);
        for at in 0..sealed.len() {
            let mut other: Vec<char> = sealed.chars().collect();
            other[at] = if other[at] == '0' { '1' } else { '0' };
            assert_eq!(seal.open(&other.iter().collect::<String>()), None, "digit {at}");
        }
        let cut = sealed.strip_suffix(|_: char| true).unwrap();
        for other in ["", "00", "zz", cut, &sealed.to_uppercase()] {
            assert_eq!(seal.open(other), None, "{other}");
        }
    }
}
