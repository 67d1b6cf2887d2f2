//! The JSON values that rules look at, read out of raw text without building a tree.
//!
//! Only the members that rules name are read; everything else is skipped. Text that is not JSON
//! gives [`Malformed`], and so does an object that has the requested key twice, or a key that differs
//! from it by case or compatibility form only: a server might read the other one.
//!
//! What a walk finds out about a value (where it ends, whether it has escapes) is kept in [`Raw`].
//!
//! Invariant: no panic and no unbounded recursion on any input.
//! Start at [`Arguments`].

use std::{borrow::Cow, cell::OnceCell};

use smallvec::SmallVec;
pub(crate) use toolgate_json::{Malformed, walk::Raw};
use toolgate_json::{
    is_variant,
    skip::{trim, value_len},
    unescape,
    walk::{Member, Walk},
};

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

impl<'a> Value<'a> {
    /// Reads the value that `text` holds.
    pub(crate) fn read(text: &'a str) -> Result<Self, Malformed> {
        Raw::of(text).and_then(Self::of)
    }

    /// How much text a comparison with it may look at.
    pub(crate) fn text_len(&self) -> usize {
        match self {
            Value::String(text) => text.len(),
            Value::Number(text) => text.len(),
            Value::Null | Value::Bool(_) | Value::List(_) | Value::Object(_) | Value::Words(_) => 0,
        }
    }

    /// What a raw value is.
    pub(crate) fn of(raw: Raw<'a>) -> Result<Self, Malformed> {
        let text = raw.text;
        match text.as_bytes().first().ok_or(Malformed)? {
            b'n' if text == "null" => Ok(Value::Null),
            b't' if text == "true" => Ok(Value::Bool(true)),
            b'f' if text == "false" => Ok(Value::Bool(false)),
            b'"' => raw.string().map(Value::String),
            b'[' => Ok(Value::List(text)),
            b'{' => Ok(Value::Object(text)),
            b'-' | b'0'..=b'9' => Ok(Value::Number(text)),
            _ => Err(Malformed),
        }
    }
}

/// The value of `name` in a raw object; `None` if it is missing.
pub(crate) fn member<'a>(object: &'a str, name: &str) -> Result<Option<Raw<'a>>, Malformed> {
    let mut found = None;
    let mut walk = Walk::object(object)?;
    while let Some(member) = walk.member()? {
        if is(&member, name)? && found.replace(member.value).is_some() {
            return Err(Malformed);
        }
    }
    Ok(found)
}

/// The arguments of a call: top-level members are found once, and only if a rule asks.
pub(crate) struct Arguments<'a> {
    raw: &'a str,
    members: OnceCell<Result<Members<'a>, Malformed>>,
    /// The members of the first object among the arguments that a rule looks into; rules tend to
    /// look into the same one again.
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
        if is(member, name)? && found.replace(member.value).is_some() {
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
        let (length, _) = value_len(raw.as_bytes()).ok_or(Malformed)?;
        return if length == raw.len() { Ok(members) } else { Err(Malformed) };
    }
    let mut walk = Walk::object(raw)?;
    while let Some(member) = walk.member()? {
        members.push(member);
    }
    Ok(members)
}

/// Whether a member has this name. A name that a lenient parser takes for it is neither.
#[inline]
fn is(member: &Member<'_>, name: &str) -> Result<bool, Malformed> {
    if !member.escaped {
        return is_name(member.key, name);
    }
    is_name(&unescape(member.key)?, name)
}

#[inline]
fn is_name(key: &str, name: &str) -> Result<bool, Malformed> {
    if key == name {
        return Ok(true);
    }
    if is_variant(key, name) { Err(Malformed) } else { Ok(false) }
}

#[cfg(test)]
mod tests;
