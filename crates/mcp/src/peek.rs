//! Looks into raw JSON without reading more of it than it must.
//!
//! The text is a message that was accepted, or a part of one. What nobody asks for is skipped, not
//! read; of a large message, which nobody has read yet, small values that are asked for are.
//!
//! Invariant: any number, any depth and any size pass.
//! Invariant: a key that was asked for and occurs twice is refused, never picked from.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::code;
use crate::refusal::{Refusal, shown};
use crate::walk::{Walk, is_sound};

/// The raw value at nested object keys, such as `["_meta", "progressToken"]`; `None` if a key is
/// missing or something on the way is no object.
pub fn peek<'a>(json: &'a str, path: &[&str]) -> Result<Option<&'a str>, Refusal> {
    let mut value = json;
    for key in path {
        match members(value, [key])? {
            [Some(found)] => value = found,
            [None] => return Ok(None),
        }
    }
    Ok(Some(value))
}

/// The raw values of several keys of one object, in one pass; all `None` if it is no object.
pub fn members<'a, const N: usize>(
    json: &'a str,
    keys: [&str; N],
) -> Result<[Option<&'a str>; N], Refusal> {
    if !starts_with(json, '{') {
        return Ok([None; N]);
    }
    pick(json, keys).unwrap_or_else(|| Err(broken(json)))
}

/// `None` if the text does not come out even.
fn pick<'a, const N: usize>(
    json: &'a str,
    keys: [&str; N],
) -> Option<Result<[Option<&'a str>; N], Refusal>> {
    let mut found = [None; N];
    let mut walk = Walk::over(json)?;
    while let Some(key) = walk.key()? {
        let (key, value) = (key_text(key), walk.value()?);
        let mut wanted = keys.iter().zip(&mut found);
        if let Some((name, slot)) = wanted.find(|(name, _)| key.as_deref() == Some(**name)) {
            if slot.replace(value).is_some() {
                return Some(Err(twice(name)));
            }
            if !is_sound(value, json) {
                return Some(Err(broken(value)));
            }
        }
    }
    Some(Ok(found))
}

#[cold]
fn twice(key: &str) -> Refusal {
    let message = format!("the key `{}` occurs twice; send it once", shown(key));
    Refusal::new(code::INVALID_PARAMS, message)
}

/// What is wrong with a text that is no JSON.
#[cold]
fn broken(json: &str) -> Refusal {
    match serde_json::from_str::<IgnoredAny>(json) {
        Err(error) => Refusal::syntax(&error),
        Ok(_) => Refusal::new(code::PARSE_ERROR, "the JSON cannot be read"),
    }
}

/// The raw elements of an array; `None` if it is no array.
pub fn items(json: &str) -> Result<Option<Vec<&str>>, Refusal> {
    if !starts_with(json, '[') {
        return Ok(None);
    }
    let items: Vec<&RawValue> =
        serde_json::from_str(json).map_err(|error| Refusal::syntax(&error))?;
    Ok(Some(items.into_iter().map(RawValue::get).collect()))
}

/// The raw keys and values of an object, in their order; `None` if it is no object.
pub fn entries(json: &str) -> Result<Option<Vec<(&str, &str)>>, Refusal> {
    if !starts_with(json, '{') {
        return Ok(None);
    }
    let mut reader = serde_json::Deserializer::from_str(json);
    let entries =
        reader.deserialize_map(Entries).and_then(|entries| reader.end().map(|()| entries));
    entries.map(Some).map_err(|error| Refusal::syntax(&error))
}

/// The text of a raw JSON string, borrowed if it has no escapes; `None` if it is no string or has
/// a lone surrogate, which no text can hold.
pub fn text(raw: &str) -> Option<Cow<'_, str>> {
    if let Some(plain) = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"'))
        && plain.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\')
    {
        return Some(Cow::Borrowed(plain));
    }
    let Text(text) = serde_json::from_str(raw).ok()?;
    Some(text)
}

/// The text of a key that serde_json has accepted; `None` if it has a lone surrogate.
pub(crate) fn key_text(raw: &str) -> Option<Cow<'_, str>> {
    if memchr(b'\\', raw.as_bytes()).is_some() {
        return text(raw);
    }
    Some(Cow::Borrowed(raw.strip_prefix('"')?.strip_suffix('"')?))
}

fn starts_with(json: &str, bracket: char) -> bool {
    json.trim_start_matches([' ', '\t', '\n', '\r']).starts_with(bracket)
}

/// Takes everything out of an object.
struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Vec<(&'de str, &'de str)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            entries.push((key.get(), value.get()));
        }
        Ok(entries)
    }
}

/// A string that borrows where it can; serde's own `Cow` always copies.
struct Text<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_str(TextVisitor).map(Text)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

#[cfg(test)]
mod tests;
