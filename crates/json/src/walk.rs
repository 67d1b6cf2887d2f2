//! Steps through the members of one object, or the elements of one list, without reading into
//! their values.
//!
//! [`Walk::key`] and [`Walk::value`] go step by step and leave what follows the closing bracket to
//! the caller ([`Walk::rest`]). [`Walk::member`] and [`Walk::element`] take a whole step and require
//! that nothing but blanks follows.
//!
//! Invariant: in valid JSON every key and value is found where it is. Other text gives [`Malformed`]
//! or is cut in the wrong place, and then a parser that validates it rejects it. Nothing panics or
//! recurses.
//! Start at [`Walk::key`]. `skip` finds where values end.

#![expect(
    clippy::inline_always,
    reason = "stepping through arguments is most of a decision; inlined it takes a tenth less"
)]

use std::borrow::Cow;

use crate::Malformed;
use crate::skip::{Escapes, is_blank, string_len, trim, value_len};
use crate::text::unescape;

#[cfg(test)]
mod tests;

/// A position in an object or list.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    json: &'a str,
    at: usize,
    close: u8,
    begun: bool,
}

/// A key or value as it is spelled, without blanks around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a> {
    /// The text; of a string with its quotes.
    pub text: &'a str,
    /// The escapes of a string.
    pub escapes: Escapes,
}

/// One `"key": value` of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// The key without its quotes, escapes unresolved.
    pub key: &'a str,
    /// Whether the key has escapes.
    pub escaped: bool,
    /// The value.
    pub value: Raw<'a>,
}

// === impl Walk ===

impl<'a> Walk<'a> {
    /// A walk through the object that `json` starts with.
    #[inline]
    pub fn object(json: &'a str) -> Result<Self, Malformed> {
        Self::open(json, 0, b'{')
    }

    /// A walk through the list that `json` starts with.
    #[inline]
    pub fn list(json: &'a str) -> Result<Self, Malformed> {
        Self::open(json, 0, b'[')
    }

    #[inline]
    fn open(json: &'a str, at: usize, open: u8) -> Result<Self, Malformed> {
        let at = blanks(json.as_bytes(), at);
        if json.as_bytes().get(at) != Some(&open) {
            return Err(Malformed);
        }
        // In ASCII, `]` and `}` are two after `[` and `{`.
        Ok(Self { json, at: at + 1, close: open + 2, begun: false })
    }

    /// The next key; `None` after the closing brace. [`Walk::value`] must be called after a key.
    #[inline(always)]
    pub fn key(&mut self) -> Result<Option<Raw<'a>>, Malformed> {
        let Some((start, end, escapes)) = self.key_place()? else { return Ok(None) };
        let text = self.json.get(start..end).ok_or(Malformed)?;
        Ok(Some(Raw { text, escapes }))
    }

    /// The value of the last key.
    #[inline(always)]
    pub fn value(&mut self) -> Result<Raw<'a>, Malformed> {
        let rest = self.json.as_bytes().get(self.at..).ok_or(Malformed)?;
        let (length, escapes) = value_len(rest).ok_or(Malformed)?;
        self.take(length).map(|text| Raw { text, escapes })
    }

    /// The next member; `None` at the end of the text.
    #[inline(always)]
    pub fn member(&mut self) -> Result<Option<Member<'a>>, Malformed> {
        let Some((start, end, escapes)) = self.key_place()? else { return self.end() };
        let key = self.json.get(start + 1..end - 1).ok_or(Malformed)?;
        Ok(Some(Member { key, escaped: escapes != Escapes::None, value: self.value()? }))
    }

    /// The next element; `None` at the end of the text.
    #[inline]
    pub fn element(&mut self) -> Result<Option<Raw<'a>>, Malformed> {
        if self.advance()? { self.value().map(Some) } else { self.end() }
    }

    /// A walk through the value of the last key, if that is an object. [`Walk::leave`] continues
    /// after it, so that nothing is scanned twice.
    pub fn enter(&self) -> Option<Self> {
        Self::open(self.json, self.at, b'{').ok()
    }

    /// Continues after the object that `inner` walked through to its end. Returns that object.
    pub fn leave(&mut self, inner: &Self) -> Result<&'a str, Malformed> {
        self.take(inner.at.checked_sub(self.at).ok_or(Malformed)?)
    }

    /// The text that was not walked through yet.
    pub fn rest(&self) -> &'a str {
        self.json.get(self.at..).unwrap_or_default()
    }

    /// Where the next key starts and ends, quotes included; moves to its value.
    #[inline(always)]
    fn key_place(&mut self) -> Result<Option<(usize, usize, Escapes)>, Malformed> {
        if !self.advance()? {
            return Ok(None);
        }
        let bytes = self.json.as_bytes();
        let start = self.at;
        let (length, escapes) = bytes.get(start..).and_then(string_len).ok_or(Malformed)?;
        let end = start + length;
        let colon = blanks(bytes, end);
        if bytes.get(colon) != Some(&b':') {
            return Err(Malformed);
        }
        self.at = blanks(bytes, colon + 1);
        Ok(Some((start, end, escapes)))
    }

    /// Moves to the next item; `false` after the closing bracket.
    #[inline(always)]
    fn advance(&mut self) -> Result<bool, Malformed> {
        let bytes = self.json.as_bytes();
        self.at = blanks(bytes, self.at);
        let next = *bytes.get(self.at).ok_or(Malformed)?;
        if next == self.close {
            self.at += 1;
            return Ok(false);
        }
        if std::mem::replace(&mut self.begun, true) {
            if next != b',' {
                return Err(Malformed);
            }
            self.at = blanks(bytes, self.at + 1);
        }
        Ok(true)
    }

    #[inline(always)]
    fn end<T>(&self) -> Result<Option<T>, Malformed> {
        let bytes = self.json.as_bytes();
        if blanks(bytes, self.at) == bytes.len() { Ok(None) } else { Err(Malformed) }
    }

    #[inline(always)]
    fn take(&mut self, length: usize) -> Result<&'a str, Malformed> {
        let part = self.json.get(self.at..self.at + length).ok_or(Malformed)?;
        self.at += length;
        Ok(part)
    }
}

/// The first position from `at` on that is not blank.
#[inline(always)]
fn blanks(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|byte| is_blank(*byte)) {
        at += 1;
    }
    at
}

// === impl Raw ===

impl<'a> Raw<'a> {
    /// The value that `json` consists of. Only of a string it is checked that nothing follows.
    pub fn of(json: &'a str) -> Result<Self, Malformed> {
        let text = trim(json);
        if !text.starts_with('"') {
            return Ok(Self { text, escapes: Escapes::None });
        }
        match string_len(text.as_bytes()) {
            Some((length, escapes)) if length == text.len() => Ok(Self { text, escapes }),
            _ => Err(Malformed),
        }
    }

    /// Whether it is a string with escapes.
    #[inline]
    pub fn is_escaped(self) -> bool {
        self.escapes != Escapes::None
    }

    /// The text of a string; an error if an escape is invalid or half of a surrogate pair.
    #[inline]
    pub fn string(self) -> Result<Cow<'a, str>, Malformed> {
        let inner = self.inner()?;
        if self.is_escaped() { unescape(inner) } else { Ok(Cow::Borrowed(inner)) }
    }

    /// A string without its quotes, escapes unresolved.
    #[inline]
    fn inner(self) -> Result<&'a str, Malformed> {
        let last = self.text.len().checked_sub(1).ok_or(Malformed)?;
        self.text.get(1..last).ok_or(Malformed)
    }
}

// === impl Member ===

impl<'a> Member<'a> {
    /// The text of the key.
    pub fn name(&self) -> Result<Cow<'a, str>, Malformed> {
        if self.escaped { unescape(self.key) } else { Ok(Cow::Borrowed(self.key)) }
    }
}
