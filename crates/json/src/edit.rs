//! Changes parts of a raw message and leaves every other byte as it is.
//!
//! A part is given as a slice of the message; its address tells where it belongs.
//! Start at [`Edit::new`].

use std::borrow::Cow;

use bytes::Bytes;

use crate::escape::quote;

/// Replacements in one message, made at once by [`Edit::finish`].
#[derive(Debug, Clone)]
pub struct Edit<'a> {
    raw: &'a str,
    cuts: Vec<Cut<'a>>,
    /// Whether the cuts came in the order of their places.
    ordered: bool,
}

/// A part that an edit cannot change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// It is not a slice of the message.
    #[error("the part to change is not a part of this message")]
    Outside,
    /// It is changed already, wholly or partly.
    #[error("two changes of a message meet in one place")]
    Overlap,
    /// A member can be inserted only into an object.
    #[error("a member can be inserted only into an object")]
    NotAnObject,
}

#[derive(Debug, Clone)]
struct Cut<'a> {
    start: usize,
    end: usize,
    with: Cow<'a, str>,
}

impl<'a> Edit<'a> {
    /// Nothing is changed yet.
    pub fn new(raw: &'a str) -> Self {
        Self { raw, cuts: Vec::new(), ordered: true }
    }

    /// Replaces `part`, a slice of the message, by `with`, which must be JSON.
    pub fn replace(self, part: &str, with: impl Into<Cow<'a, str>>) -> Result<Self, EditError> {
        let start = offset(self.raw, part).ok_or(EditError::Outside)?;
        self.cut(Cut { start, end: start + part.len(), with: with.into() })
    }

    /// Inserts a new first member into `object`, a slice of the message. The caller makes sure that
    /// the object has no such key.
    pub fn insert(self, object: &str, key: &str, value: &str) -> Result<Self, EditError> {
        self.insert_raw(object, &format!("{}:{value}", quote(key)))
    }

    /// Inserts `members`, which must be members of an object in JSON, first into `object`.
    pub fn insert_raw(self, object: &str, members: &str) -> Result<Self, EditError> {
        let start = offset(self.raw, object).ok_or(EditError::Outside)?;
        let rest = object.strip_prefix('{').ok_or(EditError::NotAnObject)?;
        let empty = rest.trim_start_matches([' ', '\t', '\n', '\r']).starts_with('}');
        let with = format!("{members}{}", if empty { "" } else { "," });
        self.cut(Cut { start: start + 1, end: start + 1, with: with.into() })
    }

    /// The message with all changes made.
    pub fn finish(mut self) -> Bytes {
        self.cuts.sort_unstable_by_key(|cut| cut.start);
        let removed: usize = self.cuts.iter().map(|cut| cut.end - cut.start).sum();
        let added: usize = self.cuts.iter().map(|cut| cut.with.len()).sum();
        let mut out = Vec::with_capacity(self.raw.len() - removed + added);
        let mut at = 0;
        for cut in &self.cuts {
            out.extend_from_slice(self.raw.get(at..cut.start).unwrap_or_default().as_bytes());
            out.extend_from_slice(cut.with.as_bytes());
            at = cut.end;
        }
        out.extend_from_slice(self.raw.get(at..).unwrap_or_default().as_bytes());
        Bytes::from(out)
    }

    /// INVARIANT: cuts lie inside `raw`, on character borders, and no two of them share a byte or
    /// a place.
    fn cut(mut self, cut: Cut<'a>) -> Result<Self, EditError> {
        let clear = |other: &Cut<'_>| {
            (cut.end <= other.start || other.end <= cut.start) && cut.start != other.start
        };
        // Most come in order, and then one comparison is enough.
        let in_order =
            self.cuts.last().is_none_or(|last| last.end <= cut.start && last.start < cut.start);
        if !(in_order && self.ordered || self.cuts.iter().all(clear)) {
            return Err(EditError::Overlap);
        }
        self.ordered &= in_order;
        self.cuts.push(cut);
        Ok(self)
    }
}

/// Where `part` starts in `whole`; `None` if it is not a slice of it. An empty part is never one:
/// its address tells nothing.
pub fn offset(whole: &str, part: &str) -> Option<usize> {
    let start = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    let end = start.checked_add(part.len())?;
    (end <= whole.len() && !part.is_empty()).then_some(start)
}

#[cfg(test)]
mod tests;
