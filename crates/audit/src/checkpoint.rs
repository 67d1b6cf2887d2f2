//! Checkpoints: signed statements that the chain stood at a row with a hash.
//!
//! They show what the chain alone cannot: that rows at its end were cut off, or that all of it was
//! written anew by somebody without the key. The signed text is
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

use crate::{Hash, Head};

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

/// Tells whether a checkpoint was signed by the key's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl Signer {
    /// From the 32 secret bytes.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(secret))
    }

    /// The key others verify with.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Signs the end of the chain.
    pub fn sign(&self, head: Head, time: Timestamp) -> Checkpoint {
        let time = Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time);
        let Head { seq, hash } = head;
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
    /// From its 32 bytes; `None` if they are no key.
    pub fn new(bytes: &[u8; 32]) -> Option<Self> {
        VerifyingKey::from_bytes(bytes).ok().map(Self)
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
