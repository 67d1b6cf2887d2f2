//! Writes messages of toolgate itself; raw arguments are copied unchanged.
//!
//! Invariant: `raw` arguments are JSON already. Text arguments are escaped here.

use std::borrow::Cow;

use bytes::Bytes;
use memchr::{memchr2, memchr2_iter};
use toolgate_json::escape::{push_quoted, quoted_len};

/// The id of a request of toolgate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Id<'a> {
    /// A sequence number.
    Number(u64),
    /// A raw JSON string or number.
    Raw(&'a str),
}

impl From<u64> for Id<'_> {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl<'a> From<&'a str> for Id<'a> {
    fn from(raw: &'a str) -> Self {
        Self::Raw(raw)
    }
}

/// A request; `params` is raw.
pub fn request<'a>(id: impl Into<Id<'a>>, method: &str, params: Option<&str>) -> Bytes {
    let mut digits = itoa::Buffer::new();
    let id = match id.into() {
        Id::Raw(raw) => raw,
        Id::Number(number) => digits.format(number),
    };
    message(Some(id), method, params)
}

/// A notification; `params` is raw.
pub fn notification(method: &str, params: Option<&str>) -> Bytes {
    message(None, method, params)
}

/// The answer to the request with this raw id; `result` is raw.
pub fn result(id: &str, result: &str) -> Bytes {
    join(&[
        Part::Raw(r#"{"jsonrpc":"2.0","id":"#),
        Part::Raw(id),
        Part::Raw(r#","result":"#),
        Part::Raw(result),
        Part::Raw("}"),
    ])
}

/// An error in answer to the request with this raw id, or to an unknown request; `data` is raw.
pub fn error(id: Option<&str>, code: i32, message: &str, data: Option<&str>) -> Bytes {
    let mut digits = itoa::Buffer::new();
    join(&[
        Part::Raw(r#"{"jsonrpc":"2.0","id":"#),
        Part::Raw(id.unwrap_or("null")),
        Part::Raw(r#","error":{"code":"#),
        Part::Raw(digits.format(code)),
        Part::Raw(r#","message":"#),
        Part::Text(message),
        Part::Raw(if data.is_some() { r#","data":"# } else { "" }),
        Part::Raw(data.unwrap_or("")),
        Part::Raw("}}"),
    ])
}

/// The same JSON on one line, as stdio needs it; borrowed if it is on one line already.
/// A line break inside a string is always escaped, so every raw one is whitespace.
pub fn compact(raw: &str) -> Cow<'_, str> {
    match memchr2(b'\n', b'\r', raw.as_bytes()) {
        None => Cow::Borrowed(raw),
        Some(_) => Cow::Owned(raw.split(['\n', '\r']).collect()),
    }
}

/// [`compact`] for a whole message: the same bytes if it is on one line already.
pub fn compact_bytes(raw: Bytes) -> Bytes {
    if memchr2(b'\n', b'\r', &raw).is_none() {
        return raw;
    }
    let mut out = Vec::with_capacity(raw.len());
    let mut at = 0;
    for found in memchr2_iter(b'\n', b'\r', &raw) {
        out.extend_from_slice(raw.get(at..found).unwrap_or_default());
        at = found + 1;
    }
    out.extend_from_slice(raw.get(at..).unwrap_or_default());
    Bytes::from(out)
}

#[derive(Clone, Copy)]
enum Part<'a> {
    Raw(&'a str),
    Text(&'a str),
}

fn message(id: Option<&str>, method: &str, params: Option<&str>) -> Bytes {
    join(&[
        Part::Raw(r#"{"jsonrpc":"2.0""#),
        Part::Raw(if id.is_some() { r#","id":"# } else { "" }),
        Part::Raw(id.unwrap_or("")),
        Part::Raw(r#","method":"#),
        Part::Text(method),
        Part::Raw(if params.is_some() { r#","params":"# } else { "" }),
        Part::Raw(params.unwrap_or("")),
        Part::Raw("}"),
    ])
}

/// Concatenates the parts in one allocation.
fn join(parts: &[Part<'_>]) -> Bytes {
    let len = parts.iter().map(|part| match part {
        Part::Raw(raw) => raw.len(),
        Part::Text(text) => quoted_len(text),
    });
    let mut out = String::with_capacity(len.sum());
    for part in parts {
        match part {
            Part::Raw(raw) => out.push_str(raw),
            Part::Text(text) => push_quoted(text, &mut out),
        }
    }
    Bytes::from(out)
}

#[cfg(test)]
mod tests;
