//! Fixed-size values of a row: the id of a call, and SHA-256 hashes. Written as lower-case hex.

use std::fmt;

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
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
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
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, byte) in self.0.iter().enumerate() {
            if matches!(place, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Appends lower-case hex; formatting byte by byte would cost more than the hash itself.
pub(crate) fn push_hex(bytes: &[u8], out: &mut String) {
    let digit = |value: u8| char::from(if value < 10 { b'0' + value } else { b'a' + value - 10 });
    for byte in bytes {
        out.push(digit(byte >> 4));
        out.push(digit(byte & 0x0f));
    }
}

fn from_hex(text: &[u8], out: &mut [u8]) -> Result<(), NotHex> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(NotHex),
    };
    if text.len() != out.len() * 2 {
        return Err(NotHex);
    }
    for (to, pair) in out.iter_mut().zip(text.chunks_exact(2)) {
        let [high, low] = pair else { return Err(NotHex) };
        *to = value(*high)? << 4 | value(*low)?;
    }
    Ok(())
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
