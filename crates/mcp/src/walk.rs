//! Walks over the members of a raw JSON object without looking into their values.
//!
//! Invariant: of valid JSON every key and value is found where it is. What is not valid may be cut
//! in the wrong place, and most of it does not come out even; nothing here judges, panics or
//! recurses.
//! Start at [`Walk::key`].

use serde::de::IgnoredAny;

use crate::skip::{nested_len, string_len};

#[cfg(test)]
mod tests;

/// A server's message of this size and more is not read value by value when it comes. So a part of
/// a message that is smaller than this is known to be valid, and a larger one is not.
pub(crate) const LARGE: usize = 16 * 1024;

/// Where a walk stands.
pub(crate) struct Walk<'a> {
    json: &'a str,
    at: usize,
    begun: bool,
}

impl<'a> Walk<'a> {
    /// `None` if `json` is no object.
    pub(crate) fn over(json: &'a str) -> Option<Self> {
        Self::at(json, 0)
    }

    fn at(json: &'a str, at: usize) -> Option<Self> {
        let mut walk = Self { json, at, begun: false };
        walk.expect(b'{')?;
        Some(walk)
    }

    /// The next key with its quotes, or `Some(None)` behind the closing brace; `None` if the text
    /// does not come out even. After a key its value must be taken.
    #[inline]
    #[expect(clippy::option_option, reason = "the outer one is for `?`: the text is broken")]
    pub(crate) fn key(&mut self) -> Option<Option<&'a str>> {
        let begun = std::mem::replace(&mut self.begun, true);
        if begun && self.expect(b',').is_none() || !begun && self.peek()? == b'}' {
            self.expect(b'}')?;
            return Some(None);
        }
        self.skip_space();
        let key = self.take(string_len(self.rest()?)?.0)?;
        self.expect(b':')?;
        self.skip_space();
        Some(Some(key))
    }

    /// The value of the key before.
    #[inline]
    pub(crate) fn value(&mut self) -> Option<&'a str> {
        let length = value_len(self.rest()?)?;
        self.take(length)
    }

    /// A walk over the value of the key before, if that is an object. [`Walk::leave`] goes on
    /// behind it, so that nothing is walked over twice.
    pub(crate) fn enter(&self) -> Option<Self> {
        Self::at(self.json, self.at)
    }

    /// The whole of the object that `inner` has walked over to its end.
    pub(crate) fn leave(&mut self, inner: &Self) -> Option<&'a str> {
        self.take(inner.at.checked_sub(self.at)?)
    }

    /// What stands behind the closing brace.
    pub(crate) fn behind(&self) -> &'a str {
        self.json.get(self.at..).unwrap_or_default()
    }

    fn rest(&self) -> Option<&'a [u8]> {
        self.json.as_bytes().get(self.at..)
    }

    fn take(&mut self, length: usize) -> Option<&'a str> {
        let part = self.json.get(self.at..self.at + length)?;
        self.at += length;
        Some(part)
    }

    #[inline]
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.json.as_bytes().get(self.at) {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.json.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }
}

/// Whether a value cut out of `whole` is JSON. Of a small text that is known.
pub(crate) fn is_sound(value: &str, whole: &str) -> bool {
    whole.len() < LARGE || value.len() >= LARGE || serde_json::from_str::<IgnoredAny>(value).is_ok()
}

/// The length of the value with which `bytes` begin.
#[inline]
fn value_len(bytes: &[u8]) -> Option<usize> {
    match bytes.first()? {
        b'{' | b'[' => nested_len(bytes),
        b'"' => string_len(bytes).map(|(length, _)| length),
        _ => {
            bytes.iter().position(|byte| b",}] \t\r\n".contains(byte)).filter(|length| *length > 0)
        }
    }
}
