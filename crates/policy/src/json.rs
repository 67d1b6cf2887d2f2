//! Borrowed JSON: reads single values out of raw text without building a tree.
//!
//! Only the members that rules name are looked at; everything else is skipped over. Text that is
//! not JSON gives [`Malformed`], and so does an object that has the wanted key twice, or a key that
//! differs from it by case or compatibility form only: a reader behind the gate might take the other
//! one.
//!
//! What the walk over an object or list learns of a value is found once per walk (where it
//! ends, whether it has escapes), kept in [`Raw`], and not found out again.
//!
//! Invariant: no panic and no unbounded recursion on any input.
//! Start at [`Arguments`], then [`Items`]; `scan` finds where things end.

#![expect(
    clippy::inline_always,
    reason = "the walk over the arguments is most of a decision; as one piece it takes a tenth less"
)]

mod scan;

use std::{borrow::Cow, cell::OnceCell};

use memchr::memchr;
use smallvec::SmallVec;
use toolgate_mcp::is_variant;

use scan::{blanks, string_end, trim, value_end};

/// A JSON value, read one level deep.
#[derive(Clone, Debug)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    /// As spelled.
    Number(&'a str),
    String(Cow<'a, str>),
    /// The raw text, brackets included.
    List(&'a str),
    /// The raw text, braces included.
    Object(&'a str),
    /// A list that does not come from JSON.
    Words(&'a [String]),
}

/// The text is not JSON, or is ambiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// A value as it stands in an object or list, without blanks around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raw<'a> {
    pub(crate) text: &'a str,
    /// It is a string with escapes.
    escaped: bool,
}

impl<'a> Value<'a> {
    /// Reads the value that `text` holds.
    pub(crate) fn read(text: &'a str) -> Result<Self, Malformed> {
        let text = trim(text);
        if !text.starts_with('"') {
            return Raw { text, escaped: false }.read();
        }
        let (end, escaped) = string_end(text.as_bytes(), 0)?;
        if end == text.len() { Raw { text, escaped }.read() } else { Err(Malformed) }
    }

    /// How much text a comparison with it may look at.
    pub(crate) fn text_len(&self) -> usize {
        match self {
            Value::String(text) => text.len(),
            Value::Number(text) => text.len(),
            Value::Null | Value::Bool(_) | Value::List(_) | Value::Object(_) | Value::Words(_) => 0,
        }
    }
}

impl<'a> Raw<'a> {
    /// What the value is.
    pub(crate) fn read(self) -> Result<Value<'a>, Malformed> {
        let text = self.text;
        match text.as_bytes().first().ok_or(Malformed)? {
            b'n' if text == "null" => Ok(Value::Null),
            b't' if text == "true" => Ok(Value::Bool(true)),
            b'f' if text == "false" => Ok(Value::Bool(false)),
            b'"' => {
                let inner = text.get(1..text.len() - 1).ok_or(Malformed)?;
                if self.escaped {
                    unescape(inner).map(Value::String)
                } else {
                    Ok(Value::String(Cow::Borrowed(inner)))
                }
            }
            b'[' => Ok(Value::List(text)),
            b'{' => Ok(Value::Object(text)),
            b'-' | b'0'..=b'9' => Ok(Value::Number(text)),
            _ => Err(Malformed),
        }
    }
}

/// The value of `name` in a raw object; `None` if it has none.
pub(crate) fn member<'a>(object: &'a str, name: &str) -> Result<Option<Raw<'a>>, Malformed> {
    let mut found = None;
    let mut items = Items::of(object, b'{')?;
    while let Some(item) = items.next_member()? {
        if item.is(name)? && found.replace(item.value).is_some() {
            return Err(Malformed);
        }
    }
    Ok(found)
}

/// The raw elements of a raw list.
pub(crate) fn elements(list: &str) -> Result<Items<'_>, Malformed> {
    Items::of(list, b'[')
}

/// The arguments of a call: top-level members are found once, and only if a rule asks.
pub(crate) struct Arguments<'a> {
    raw: &'a str,
    members: OnceCell<Result<Members<'a>, Malformed>>,
    /// Those of the first object among them that a rule looks into: rules tend to look into the
    /// same one again.
    inner: OnceCell<(&'a str, Result<Members<'a>, Malformed>)>,
}

type Members<'a> = SmallVec<[Member<'a>; 8]>;

impl<'a> Arguments<'a> {
    pub(crate) fn new(raw: &'a str) -> Self {
        Self { raw, members: OnceCell::new(), inner: OnceCell::new() }
    }

    /// How long their text is.
    pub(crate) fn len(&self) -> usize {
        self.raw.len()
    }

    /// The raw value of a top-level argument.
    pub(crate) fn get(&self, name: &str) -> Result<Option<Raw<'a>>, Malformed> {
        let members = self.members.get_or_init(|| index(self.raw));
        find(members.as_ref().map_err(|e| *e)?, name)
    }

    /// The raw value of `name` in an argument that is the raw object given.
    pub(crate) fn within(&self, object: &'a str, name: &str) -> Result<Option<Raw<'a>>, Malformed> {
        let (kept, members) = self.inner.get_or_init(|| (object, index(object)));
        if std::ptr::eq(*kept, object) {
            find(members.as_ref().map_err(|e| *e)?, name)
        } else {
            member(object, name)
        }
    }
}

fn find<'a>(members: &[Member<'a>], name: &str) -> Result<Option<Raw<'a>>, Malformed> {
    let mut found = None;
    for member in members {
        if member.is(name)? && found.replace(member.value).is_some() {
            return Err(Malformed);
        }
    }
    Ok(found)
}

fn index(raw: &str) -> Result<Members<'_>, Malformed> {
    let raw = trim(raw);
    let mut members = SmallVec::new();
    if !raw.starts_with('{') {
        // Not an object: nothing in it has a name. Still refuse what is not JSON at all.
        let (end, _) = value_end(raw.as_bytes(), 0)?;
        return if end == raw.len() { Ok(members) } else { Err(Malformed) };
    }
    let mut items = Items::of(raw, b'{')?;
    while let Some(member) = items.next_member()? {
        members.push(member);
    }
    Ok(members)
}

/// One `"key": value` of an object.
#[derive(Clone, Copy)]
pub(crate) struct Member<'a> {
    key: &'a str,
    /// The key has escapes.
    escaped: bool,
    pub(crate) value: Raw<'a>,
}

impl<'a> Member<'a> {
    /// Whether it has this name. A name that a lenient reader takes for it is neither.
    #[inline]
    fn is(&self, name: &str) -> Result<bool, Malformed> {
        if !self.escaped {
            return is_name(self.key, name);
        }
        is_name(&unescape(self.key)?, name)
    }

    pub(crate) fn key(&self) -> Result<Cow<'a, str>, Malformed> {
        unescape(self.key)
    }
}

#[inline]
fn is_name(key: &str, name: &str) -> Result<bool, Malformed> {
    if key == name {
        return Ok(true);
    }
    if is_variant(key, name) { Err(Malformed) } else { Ok(false) }
}

/// Walks the members of an object or the elements of a list.
pub(crate) struct Items<'a> {
    text: &'a str,
    at: usize,
    close: u8,
    first: bool,
}

impl<'a> Items<'a> {
    pub(crate) fn of(text: &'a str, open: u8) -> Result<Self, Malformed> {
        let text = trim(text);
        if text.as_bytes().first() != Some(&open) {
            return Err(Malformed);
        }
        // `]` and `}` stand two behind `[` and `{`.
        Ok(Self { text, at: 1, close: open + 2, first: true })
    }

    /// Stands at the next item, or `false` at the end.
    #[inline(always)]
    fn advance(&mut self) -> Result<bool, Malformed> {
        let bytes = self.text.as_bytes();
        self.at = blanks(bytes, self.at);
        let next = *bytes.get(self.at).ok_or(Malformed)?;
        if next == self.close {
            return if self.at + 1 == bytes.len() { Ok(false) } else { Err(Malformed) };
        }
        if !self.first {
            if next != b',' {
                return Err(Malformed);
            }
            self.at = blanks(bytes, self.at + 1);
        }
        self.first = false;
        Ok(true)
    }

    #[inline(always)]
    pub(crate) fn next_member(&mut self) -> Result<Option<Member<'a>>, Malformed> {
        if !self.advance()? {
            return Ok(None);
        }
        let bytes = self.text.as_bytes();
        if bytes.get(self.at) != Some(&b'"') {
            return Err(Malformed);
        }
        let (end, escaped) = string_end(bytes, self.at)?;
        let key = self.text.get(self.at + 1..end - 1).ok_or(Malformed)?;
        let colon = blanks(bytes, end);
        if bytes.get(colon) != Some(&b':') {
            return Err(Malformed);
        }
        self.at = blanks(bytes, colon + 1);
        let value = self.take_value()?;
        Ok(Some(Member { key, escaped, value }))
    }

    pub(crate) fn next_element(&mut self) -> Result<Option<Raw<'a>>, Malformed> {
        if self.advance()? { self.take_value().map(Some) } else { Ok(None) }
    }

    #[inline(always)]
    fn take_value(&mut self) -> Result<Raw<'a>, Malformed> {
        let (end, escaped) = value_end(self.text.as_bytes(), self.at)?;
        let text = self.text.get(self.at..end).ok_or(Malformed)?;
        self.at = end;
        Ok(Raw { text, escaped })
    }
}

fn unescape(raw: &str) -> Result<Cow<'_, str>, Malformed> {
    if memchr(b'\\', raw.as_bytes()).is_none() {
        return Ok(Cow::Borrowed(raw));
    }
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match rest.next().ok_or(Malformed)? {
            c @ ('"' | '\\' | '/') => c,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => code_point(&mut rest)?,
            _ => return Err(Malformed),
        });
    }
    Ok(Cow::Owned(out))
}

fn code_point(rest: &mut std::str::Chars<'_>) -> Result<char, Malformed> {
    let high = hex4(rest)?;
    if !(0xD800..0xDC00).contains(&high) {
        return char::from_u32(high).ok_or(Malformed);
    }
    if rest.next() != Some('\\') || rest.next() != Some('u') {
        return Err(Malformed);
    }
    let low = hex4(rest)?;
    if !(0xDC00..0xE000).contains(&low) {
        return Err(Malformed);
    }
    char::from_u32(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)).ok_or(Malformed)
}

fn hex4(rest: &mut std::str::Chars<'_>) -> Result<u32, Malformed> {
    let mut code = 0;
    for _ in 0..4 {
        code = code * 16 + rest.next().and_then(|c| c.to_digit(16)).ok_or(Malformed)?;
    }
    Ok(code)
}

#[cfg(test)]
mod tests;
