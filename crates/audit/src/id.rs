//! Fixed-size values of a row: the id of a call, and SHA-256 hashes. Written as lower-case hex.

use std::fmt;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

/// The text is not the hex form of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotHex;

/// A SHA-256 hash of a row, a policy, a definition or a token.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

/// The id of a call: a UUID version 7, so that ids sort by time.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub [u8; 16]);

// === impl Hash ===

impl Hash {
    /// SHA-256 over the bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Parses lower-case hex.
    pub fn parse(text: &str) -> Result<Self, NotHex> {
        let mut bytes = [0; 32];
        from_hex(text.as_bytes(), &mut bytes)?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        HEXLOWER.encode_display(&self.0).fmt(f)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

// === impl CallId ===

impl CallId {
    /// From the time in milliseconds since 1970 and ten random bytes.
    pub fn new(millisecond: u64, random: [u8; 10]) -> Self {
        let mut bytes = [0; 16];
        let time = millisecond.to_be_bytes().into_iter().skip(2);
        for (to, from) in bytes.iter_mut().zip(time.chain(random)) {
            *to = from;
        }
        bytes[6] = bytes[6] & 0x0f | 0x70;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Self(bytes)
    }

    /// Parses `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`, lower case.
    pub fn parse(text: &str) -> Result<Self, NotHex> {
        let mut hex = Vec::with_capacity(32);
        for (place, byte) in text.bytes().enumerate() {
            match (place, byte) {
                (8 | 13 | 18 | 23, b'-') => {}
                (8 | 13 | 18 | 23, _) => return Err(NotHex),
                _ => hex.push(byte),
            }
        }
        let mut bytes = [0; 16];
        from_hex(&hex, &mut bytes)?;
        Ok(Self(bytes))
    }

    /// Appends the id as text.
    pub(crate) fn push_to(&self, out: &mut String) {
        for (place, range) in [0..4, 4..6, 6..8, 8..10, 10..16].into_iter().enumerate() {
            if place > 0 {
                out.push('-');
            }
            HEXLOWER.encode_append(self.0.get(range).unwrap_or_default(), out);
        }
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(36);
        self.push_to(&mut text);
        f.write_str(&text)
    }
}

impl fmt::Debug for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

fn from_hex(text: &[u8], out: &mut [u8]) -> Result<(), NotHex> {
    // The decoder panics on another length.
    if text.len() != out.len() * 2 {
        return Err(NotHex);
    }
    HEXLOWER.decode_mut(text, out).map(drop).map_err(|_| NotHex)
}

#[cfg(test)]
mod tests {
    use super::{CallId, Hash, NotHex};

    #[test]
    fn ids_and_hashes_have_one_spelling() {
        let id = CallId::new(0x0192_3456_789a, [0xff; 10]);
        assert_eq!(id.to_string(), "01923456-789a-7fff-bfff-ffffffffffff");
        assert_eq!(CallId::parse(&id.to_string()), Ok(id));
        assert!(CallId::new(1, [9; 10]) < CallId::new(2, [0; 10]));
        for bad in ["", "01923456789a7fffbfffffffffffffff", "01923456-789A-7fff-bfff-ffffffffffff"]
        {
            assert_eq!(CallId::parse(bad), Err(NotHex), "{bad}");
        }
        let hash = Hash::of(b"");
        assert_eq!(Hash::parse(&hash.to_string()), Ok(hash));
        assert_eq!(Hash::parse(&hash.to_string().to_uppercase()), Err(NotHex));
    }
}
