//! Looks into raw JSON without reading more of it than it must.
//!
//! Invariant: values are skipped, not read: any number, any depth and any size pass.
//! Invariant: a key that was asked for and occurs twice is refused, never picked from.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::code;
use crate::refusal::{Refusal, shown};

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
    let mut twice = None;
    let mut reader = serde_json::Deserializer::from_str(json);
    let picked = Pick { keys, twice: &mut twice }.deserialize(&mut reader);
    if let Some(key) = twice {
        let message = format!("the key `{}` occurs twice; send it once", shown(key));
        return Err(Refusal::new(code::INVALID_PARAMS, message));
    }
    picked.map_err(|error| Refusal::syntax(&error))
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
    let entries = reader.deserialize_map(Entries).map_err(|error| Refusal::syntax(&error))?;
    Ok(Some(entries))
}

/// The text of a raw JSON string, borrowed if it has no escapes; `None` if it is no string or has
/// a lone surrogate, which no text can hold.
pub fn text(raw: &str) -> Option<Cow<'_, str>> {
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

/// Takes the values of `keys` out of an object.
struct Pick<'k, 't, const N: usize> {
    keys: [&'k str; N],
    /// Set to a key that occurs twice; reading ends there.
    twice: &'t mut Option<&'k str>,
}

impl<'de, const N: usize> DeserializeSeed<'de> for Pick<'_, '_, N> {
    type Value = [Option<&'de str>; N];

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de, const N: usize> Visitor<'de> for Pick<'_, '_, N> {
    type Value = [Option<&'de str>; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = [None; N];
        while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            let key = key_text(key.get());
            let wanted = self.keys.iter().zip(&mut found);
            if let Some((name, slot)) =
                wanted.into_iter().find(|(name, _)| key.as_deref() == Some(*name))
                && slot.replace(value.get()).is_some()
            {
                *self.twice = Some(*name);
                return Err(A::Error::custom("a key occurs twice"));
            }
        }
        Ok(found)
    }
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
