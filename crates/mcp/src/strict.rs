//! Byte scans over JSON text: how deep it nests, and whether every reader would read it alike.
//!
//! serde_json has no way to hand a number over unread (`1e400` is an error to it), so what must be
//! found inside untouched values is found by walking their bytes.
//!
//! Invariant: the text has been accepted by serde_json before; these scans look for strings and
//! brackets and judge no syntax. They do not recurse.

use std::borrow::Cow;

use crate::fold::imitates;
use crate::peek::text;
use crate::refusal::Fault;
use crate::skip::quote_or_backslash;

/// The bracket that opens one level more than `limit`, if there is one.
pub fn too_deep(json: &str, limit: usize) -> Option<&str> {
    let bytes = json.as_bytes();
    // Nearly every message has fewer brackets than it may have levels.
    if bytes.iter().filter(|byte| matches!(byte, b'{' | b'[')).count() <= limit {
        return None;
    }
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at += Token::at(bytes, at).len;
                continue;
            }
            b'{' | b'[' if depth >= limit => return json.get(at..),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// Refuses duplicate keys and lone surrogates at any depth, and among the keys of the outermost
/// object those that imitate one of `names`.
pub(crate) fn check<'a>(json: &'a str, names: &[&str]) -> Result<(), Fault<'a>> {
    let bytes = json.as_bytes();
    let mut walk =
        Walk { names, open: Vec::with_capacity(8), keys: Vec::with_capacity(16), key_next: false };
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let token = Token::at(bytes, at);
                let raw = json.get(at..at + token.len).unwrap_or_default();
                walk.string(raw, token)?;
                at += token.len;
                continue;
            }
            b'{' => walk.enter(Some(walk.keys.len())),
            b'[' => walk.enter(None),
            b'}' | b']' => walk.leave()?,
            b',' => walk.key_next = matches!(walk.open.last(), Some(Some(_))),
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// Where a [`check`] stands.
struct Walk<'a, 'n> {
    names: &'n [&'n str],
    /// The open brackets: of an object, where its keys begin in `keys`.
    open: Vec<Option<usize>>,
    /// The keys of all open objects, outermost first.
    keys: Vec<Key<'a>>,
    /// Whether the next string is a key.
    key_next: bool,
}

struct Key<'a> {
    text: Cow<'a, str>,
    raw: &'a str,
}

impl<'a> Walk<'a, '_> {
    fn enter(&mut self, keys: Option<usize>) {
        self.open.push(keys);
        self.key_next = keys.is_some();
    }

    fn leave(&mut self) -> Result<(), Fault<'a>> {
        self.key_next = false;
        if let Some(Some(first)) = self.open.pop() {
            let keys = self.keys.get_mut(first..).unwrap_or_default();
            if let Some(key) = duplicate(keys) {
                return Err(Fault::duplicate(key.raw, &key.text));
            }
            self.keys.truncate(first);
        }
        Ok(())
    }

    fn string(&mut self, raw: &'a str, token: Token) -> Result<(), Fault<'a>> {
        if !std::mem::take(&mut self.key_next) {
            let lone = token.surrogate && text(raw).is_none();
            return if lone { Err(Fault::surrogate(raw)) } else { Ok(()) };
        }
        let text = if token.escaped {
            text(raw).ok_or_else(|| Fault::surrogate(raw))?
        } else {
            Cow::Borrowed(raw.trim_matches('"'))
        };
        if self.open.len() == 1 && !self.names.is_empty() {
            // Some readers end a text at the first NUL.
            if text.chars().any(char::is_control) {
                return Err(Fault::control(raw));
            }
            if let Some(name) = imitates(&text, self.names) {
                return Err(Fault::imitation(raw, &text, name));
            }
        }
        self.keys.push(Key { text, raw });
        Ok(())
    }
}

/// A key that another one of the same object repeats. Sorting instead of hashing: nobody can
/// choose keys that make it slow, and the outcome is the same in every run.
fn duplicate<'k, 'a>(keys: &'k mut [Key<'a>]) -> Option<&'k Key<'a>> {
    keys.sort_unstable_by(|a, b| {
        a.text.cmp(&b.text).then_with(|| a.raw.as_ptr().cmp(&b.raw.as_ptr()))
    });
    let pair = keys.windows(2).find(|pair| match pair {
        [a, b] => a.text == b.text,
        _ => false,
    })?;
    pair.last()
}

/// A string token: what a byte scan can say of it.
#[derive(Clone, Copy)]
struct Token {
    /// Its length with both quotes.
    len: usize,
    /// Whether it has escapes at all.
    escaped: bool,
    /// Whether it has an escape of a surrogate, paired or not.
    surrogate: bool,
}

impl Token {
    /// The string whose opening quote is at `start`.
    fn at(bytes: &[u8], start: usize) -> Self {
        let (mut escaped, mut surrogate) = (false, false);
        let mut at = start + 1;
        while let Some(found) = bytes.get(at..).and_then(quote_or_backslash) {
            at += found;
            if bytes.get(at) == Some(&b'"') {
                return Self { len: at + 1 - start, escaped, surrogate };
            }
            escaped = true;
            surrogate |= matches!(bytes.get(at + 1..at + 3), Some([b'u', b'd' | b'D']));
            at += 2;
        }
        Self { len: bytes.len() - start, escaped, surrogate }
    }
}

#[cfg(test)]
mod tests;
