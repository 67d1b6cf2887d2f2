//! Rejects JSON that two parsers could read differently.
//!
//! Invariant: the text was accepted by serde_json before. Nothing here recurses.
//! Start at [`check`].

use std::borrow::Cow;

use crate::fold::imitates;
use crate::scan::{Scan, Step};
use crate::shown;
use crate::skip::Escapes;
use crate::text::text;
use crate::walk::Raw;

/// Something wrong at a place inside a text.
#[derive(Debug)]
pub struct Fault<'a> {
    /// The offending part, a slice of the text.
    pub at: &'a str,
    /// What is wrong, for the sender.
    pub what: String,
}

/// Rejects duplicate keys and lone surrogates at any depth, and among the keys of the outermost
/// object those that have control characters or imitate one of `names`.
pub fn check<'a>(json: &'a str, names: &[&str]) -> Result<(), Fault<'a>> {
    let mut check = Check { names, starts: Vec::with_capacity(8), keys: Vec::with_capacity(16) };
    let mut scan = Scan::new(json);
    while let Some(step) = scan.next() {
        match step {
            Step::Object => check.starts.push(check.keys.len()),
            Step::ObjectEnd => check.end()?,
            Step::Key(raw) => check.key(raw, scan.depth() == 1)?,
            Step::Text(raw) => {
                if raw.escapes == Escapes::Surrogate && text(raw.text).is_none() {
                    return Err(Fault::surrogate(raw.text));
                }
            }
            Step::List | Step::ListEnd => {}
        }
    }
    Ok(())
}

struct Check<'a, 'n> {
    names: &'n [&'n str],
    /// Where in `keys` the keys of each open object start.
    starts: Vec<usize>,
    /// The keys of all open objects, outermost first.
    keys: Vec<Key<'a>>,
}

struct Key<'a> {
    text: Cow<'a, str>,
    raw: &'a str,
}

// === impl Check ===

impl<'a> Check<'a, '_> {
    fn end(&mut self) -> Result<(), Fault<'a>> {
        let Some(start) = self.starts.pop() else { return Ok(()) };
        let keys = self.keys.get_mut(start..).unwrap_or_default();
        if let Some(key) = duplicate(keys) {
            return Err(Fault::duplicate(key.raw, &key.text));
        }
        self.keys.truncate(start);
        Ok(())
    }

    fn key(&mut self, raw: Raw<'a>, outermost: bool) -> Result<(), Fault<'a>> {
        let text = raw.string().map_err(|_| Fault::surrogate(raw.text))?;
        let raw = raw.text;
        if outermost && !self.names.is_empty() {
            // Some parsers end a text at the first NUL.
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

/// A key that repeats another one of the same object. Sorted rather than hashed: no choice of keys
/// makes it slow, and the result is the same in every run.
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

// === impl Fault ===

impl<'a> Fault<'a> {
    /// A key occurs more than once.
    pub fn duplicate(at: &'a str, key: &str) -> Self {
        Self { at, what: format!("the key `{}` occurs twice; send it once", shown(key)) }
    }

    /// A key imitates another one.
    pub fn imitation(at: &'a str, key: &str, of: &str) -> Self {
        let what = format!("the key `{}` imitates `{of}`; spell it `{of}`", shown(key));
        Self { at, what }
    }

    /// A key has control characters.
    pub fn control(at: &'a str) -> Self {
        Self { at, what: "a key of the protocol has no control characters".to_owned() }
    }

    /// A string has a lone surrogate.
    pub fn surrogate(at: &'a str) -> Self {
        let what = "a string has half of a surrogate pair; send both halves or neither".to_owned();
        Self { at, what }
    }
}

#[cfg(test)]
mod tests;
