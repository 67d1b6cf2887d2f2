//! Checkpoints: signed statements that a row of the chain has a certain hash.
//!
//! They reveal what the chain alone cannot: that rows at its end were removed, or that all of it was
//! rewritten without the key. The signed text is
//!
//! ```text
//! toolgate audit checkpoint 1
//! <seq>
//! <hash, hex>
//! <time, RFC 3339>
//! ```
//!
//! each line ended by `\n`, signed with Ed25519.

use std::fmt;

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use jiff::Timestamp;

use crate::{ChainHead, Hash};

/// A signed statement about the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The row it is about.
    pub seq: u64,
    /// That row's hash.
    pub hash: Hash,
    /// When it was signed.
    pub time: Timestamp,
    /// Ed25519 over the text.
    pub signature: [u8; 64],
}

/// Signs checkpoints.
#[derive(Clone)]
pub struct Signer(SigningKey);

/// Verifies signatures of checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl Checkpoint {
    /// The checkpoint as one line of JSON, to store elsewhere.
    pub fn to_json(&self) -> String {
        let Self { seq, hash, time, signature } = self;
        let half = |part: Option<&[u8; 32]>| Hash(part.copied().unwrap_or_default());
        let (left, right) = (half(signature.first_chunk()), half(signature.last_chunk()));
        format!(r#"{{"seq":{seq},"hash":"{hash}","time":"{time:.6}","signature":"{left}{right}"}}"#)
    }

    /// Parses the parts of such a line.
    pub fn from_parts(seq: u64, hash: &str, time: &str, signature: &str) -> Option<Self> {
        let (left, right) = signature.split_at_checked(64)?;
        let halves = [Hash::parse(left).ok()?, Hash::parse(right).ok()?];
        let mut bytes = [0; 64];
        for (to, from) in bytes.iter_mut().zip(halves.iter().flat_map(|half| half.0)) {
            *to = from;
        }
        let (hash, time) = (Hash::parse(hash).ok()?, time.parse().ok()?);
        Some(Self { seq, hash, time, signature: bytes })
    }
}

impl Signer {
    /// From the 32 secret bytes.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(secret))
    }

    /// The key for verification.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Signs the head of the chain.
    pub fn sign(&self, head: ChainHead, time: Timestamp) -> Checkpoint {
        let time = Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time);
        let ChainHead { seq, hash } = head;
        let signature = self.0.sign(text(seq, &hash, time).as_bytes()).to_bytes();
        Checkpoint { seq, hash, time, signature }
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer(secret)")
    }
}

impl PublicKey {
    /// From its 32 bytes; `None` if they are not a valid key.
    pub fn new(bytes: &[u8; 32]) -> Option<Self> {
        VerifyingKey::from_bytes(bytes).ok().map(Self)
    }

    /// SHA-256 of its 32 bytes, for comparison by people.
    pub fn fingerprint(&self) -> String {
        format!("sha256:{}", Hash::of(&self.to_bytes()))
    }

    /// Its 32 bytes.
    pub fn to_bytes(self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// Whether the checkpoint is signed by this key.
    pub fn has_signed(&self, checkpoint: &Checkpoint) -> bool {
        let text = text(checkpoint.seq, &checkpoint.hash, checkpoint.time);
        let signature = Signature::from_bytes(&checkpoint.signature);
        self.0.verify_strict(text.as_bytes(), &signature).is_ok()
    }
}

fn text(seq: u64, hash: &Hash, time: Timestamp) -> String {
    format!("toolgate audit checkpoint 1\n{seq}\n{hash}\n{time:.6}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_back() {
        let signer = Signer::new(&[7; 32]);
        let head = ChainHead { seq: 12, hash: Hash::of(b"row") };
        let checkpoint =
            signer.sign(head, Timestamp::from_microsecond(1_700_000_000_123_456).unwrap());
        let line = checkpoint.to_json();
        let part = |name: &str| {
            let (_, rest) = line.split_once(&format!("\"{name}\":\"")).unwrap();
            rest.split_once('"').unwrap().0.to_owned()
        };
        let [hash, time, signature] = ["hash", "time", "signature"].map(part);
        let read = Checkpoint::from_parts(12, &hash, &time, &signature);
        assert_eq!(read.as_ref(), Some(&checkpoint), "{line}");
        assert!(signer.public_key().has_signed(&checkpoint));
        let short = signature.get(1..).unwrap();
        assert_eq!(Checkpoint::from_parts(12, &hash, &time, short), None);
    }
}
