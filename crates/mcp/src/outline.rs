//! The outline of a large answer that arrives in pieces: everything except the content of its result.
//!
//! The pieces may be relayed before the last one arrives. The outline is the answer with an empty
//! result, which is then validated like any other message; the result itself is only scanned to its
//! end, as [`toolgate_json::skip`] scans a complete one.
//!
//! Invariant: there is an outline only of UTF-8 whose result is balanced. Then the outline is a valid
//! envelope if and only if the answer is one.
//! Invariant: keeps [`LOOK`] and [`TAIL`] bytes at most, whatever the size of the answer.
//!
//! Start at [`Outline::begin`]. Tested by `outline/tests.rs`.

use std::ops::Range;

use toolgate_json::edit::offset;
use toolgate_json::skip::Follow;
use toolgate_json::walk::Walk;

use crate::envelope::is_id;

#[cfg(test)]
mod tests;

/// How many bytes of a message may precede its result, and how many may follow it.
const LOOK: usize = 512;
const TAIL: usize = 64 * 1024;

/// An answer that is still arriving.
#[derive(Debug)]
pub struct Outline {
    /// The bytes before the result.
    head: Vec<u8>,
    id: Range<usize>,
    text: Text,
    result: Follow,
    /// The bytes after the result, once that has ended.
    tail: Option<Vec<u8>>,
    broken: bool,
}

/// Text that arrives in pieces.
#[derive(Debug, Default)]
struct Text {
    /// A character whose end has not arrived.
    begun: Vec<u8>,
}

// === impl Outline ===

impl Outline {
    /// `None` if the message that begins like this is not an answer with an object as its result, or
    /// if that is not certain yet: a member other than `jsonrpc` and `id` precedes `result`.
    pub fn begin(beginning: &[u8]) -> Option<Self> {
        let looked = beginning.get(..LOOK).unwrap_or(beginning);
        let known = looked.utf8_chunks().next()?.valid();
        let mut walk = Walk::object(known).ok()?;
        let (mut versioned, mut id) = (false, None);
        loop {
            match walk.key().ok()??.text {
                "\"jsonrpc\"" if !versioned => versioned = walk.value().ok()?.text == "\"2.0\"",
                "\"id\"" if id.is_none() => {
                    id = Some(walk.value().ok()?.text).filter(|id| is_id(id));
                    id?;
                }
                "\"result\"" if versioned => break,
                _ => return None,
            }
        }
        let (id, start) = (id?, known.len() - walk.rest().len());
        if !walk.rest().starts_with('{') {
            return None;
        }
        let place = offset(known, id)?;
        let mut outline = Self {
            head: looked.get(..start)?.to_vec(),
            id: place..place + id.len(),
            text: Text::default(),
            result: Follow::default(),
            tail: None,
            broken: false,
        };
        // The bytes before the result are known to be text.
        outline.push(beginning.get(start..)?);
        Some(outline)
    }

    /// The range of the id in the message.
    pub fn id(&self) -> Range<usize> {
        self.id.clone()
    }

    /// Adds the next piece.
    pub fn push(&mut self, piece: &[u8]) {
        self.broken =
            self.broken || !self.text.is_text_after(piece) || self.follow(piece).is_none();
    }

    /// The answer with an empty result; `None` if it is incomplete or not text.
    pub fn finish(mut self) -> Option<Vec<u8>> {
        if self.broken || !self.text.begun.is_empty() {
            return None;
        }
        if self.tail.is_none() {
            self.tail = self.result.last();
        }
        let mut outline = self.head;
        outline.extend_from_slice(b"{}");
        outline.extend_from_slice(&self.tail?);
        Some(outline)
    }

    fn follow(&mut self, piece: &[u8]) -> Option<()> {
        let tail = match &mut self.tail {
            Some(tail) => {
                tail.extend_from_slice(piece.get(..TAIL - tail.len() + 1).unwrap_or(piece));
                tail
            }
            None => match self.result.piece(piece) {
                Some(behind) => self.tail.insert(behind),
                None => return Some(()),
            },
        };
        (tail.len() <= TAIL).then_some(())
    }
}

// === impl Text ===

impl Text {
    /// Whether it is still text after this piece.
    fn is_text_after(&mut self, mut piece: &[u8]) -> bool {
        while !self.begun.is_empty() {
            let Some((next, rest)) = piece.split_first() else { return true };
            self.begun.push(*next);
            piece = rest;
            match std::str::from_utf8(&self.begun) {
                Ok(_) => self.begun.clear(),
                Err(error) if error.error_len().is_some() => return false,
                Err(_) => {}
            }
        }
        if simdutf8::basic::from_utf8(piece).is_ok() {
            return true;
        }
        // Probably cut in the middle of a character.
        match std::str::from_utf8(piece) {
            Err(error) if error.error_len().is_none() => {
                self.begun = piece.get(error.valid_up_to()..).unwrap_or_default().to_vec();
                true
            }
            other => other.is_ok(),
        }
    }
}
