//! Looks up values in raw JSON and skips the rest.
//!
//! The text is a message that was accepted, or a part of one. [`peek`] and [`members`] skip what is
//! not requested. A text of [`LARGE`] bytes or more may not have been validated yet; of such a text
//! they validate small values that are requested. [`items`] and [`entries`] validate the whole text.
//!
//! Invariant: any number, any depth and any size pass.
//! Invariant: a requested key that occurs twice is an error; none of the two is picked.

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::walk::Walk;
use crate::{Error, Malformed, object, shown};

/// A text of this size or more may be accepted without validating all of its values. So a smaller
/// part of a message is known to be valid, and a larger one is not.
pub const LARGE: usize = 16 * 1024;

/// The raw value at nested object keys, such as `["_meta", "progressToken"]`; `None` if a key is
/// missing or a value on the path is not an object.
pub fn peek<'a>(json: &'a str, path: &[&str]) -> Result<Option<&'a str>, Error> {
    let mut value = json;
    for key in path {
        match members(value, [key])? {
            [Some(found)] => value = found,
            [None] => return Ok(None),
        }
    }
    Ok(Some(value))
}

/// The raw values of several keys of one object, in one pass; all `None` if it is not an object.
pub fn members<'a, const N: usize>(
    json: &'a str,
    keys: [&str; N],
) -> Result<[Option<&'a str>; N], Error> {
    if !starts_with(json, '{') {
        return Ok([None; N]);
    }
    pick(json, keys).unwrap_or_else(|Malformed| Err(broken(json)))
}

fn pick<'a, const N: usize>(
    json: &'a str,
    keys: [&str; N],
) -> Result<Result<[Option<&'a str>; N], Error>, Malformed> {
    let mut found = [None; N];
    let mut walk = Walk::object(json)?;
    while let Some(key) = walk.key()? {
        let (key, value) = (key.string(), walk.value()?.text);
        let mut wanted = keys.iter().zip(&mut found);
        if let Some((name, slot)) = wanted.find(|(name, _)| key.as_deref() == Ok(**name)) {
            if slot.replace(value).is_some() {
                return Ok(Err(Error::Duplicate(shown(name))));
            }
            if !is_sound(value, json) {
                return Ok(Err(broken(value)));
            }
        }
    }
    Ok(Ok(found))
}

/// Why `json` could not be read.
#[cold]
fn broken(json: &str) -> Error {
    match serde_json::from_str::<IgnoredAny>(json) {
        Err(error) => error.into(),
        Ok(_) => Error::Unreadable,
    }
}

/// Whether `value`, cut out of `whole`, is valid JSON. Of a small text that is known.
pub fn is_sound(value: &str, whole: &str) -> bool {
    whole.len() < LARGE || value.len() >= LARGE || serde_json::from_str::<IgnoredAny>(value).is_ok()
}

/// The raw elements of an array; `None` if it is not an array.
pub fn items(json: &str) -> Result<Option<Vec<&str>>, Error> {
    if !starts_with(json, '[') {
        return Ok(None);
    }
    let items: Vec<&RawValue> = serde_json::from_str(json)?;
    Ok(Some(items.into_iter().map(RawValue::get).collect()))
}

/// The raw keys and values of an object, in their order; `None` if it is not an object.
pub fn entries(json: &str) -> Result<Option<Vec<(&str, &str)>>, Error> {
    if !starts_with(json, '{') {
        return Ok(None);
    }
    let mut entries = Vec::new();
    object::for_each(json, |key, value| entries.push((key, value)))?;
    Ok(Some(entries))
}

fn starts_with(json: &str, bracket: char) -> bool {
    json.trim_start_matches([' ', '\t', '\n', '\r']).starts_with(bracket)
}

#[cfg(test)]
mod tests;
