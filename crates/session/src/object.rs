//! Raw JSON objects: their members in order, and scans that parse no values.
//!
//! Invariant: nothing here recurses, at any depth of the text.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr2;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use toolgate_mcp::text;

/// A member of an object, as slices of its text.
#[derive(Debug, Clone)]
pub(crate) struct Member<'a> {
    /// The key's text; `None` if it has a lone surrogate.
    pub(crate) key: Option<Cow<'a, str>>,
    pub(crate) raw_key: &'a str,
    pub(crate) value: &'a str,
}

impl Member<'_> {
    pub(crate) fn is(&self, key: &str) -> bool {
        self.key.as_deref() == Some(key)
    }
}

/// The members of an object in order; an error if the text is not a single object.
pub(crate) fn members(json: &str) -> Result<Vec<Member<'_>>, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let members = reader.deserialize_map(MembersVisitor)?;
    reader.end()?;
    Ok(members)
}

/// The value of the first member with this key.
pub(crate) fn value<'a>(members: &[Member<'a>], key: &str) -> Option<&'a str> {
    members.iter().find(|member| member.is(key)).map(|member| member.value)
}

/// The object without the members for which `drop` is true; all other bytes are unchanged.
pub(crate) fn without(
    json: &str,
    members: &[Member<'_>],
    drop: impl Fn(&Member<'_>) -> bool,
) -> String {
    let at = |part: &str| part.as_ptr().addr() - json.as_ptr().addr();
    let Some(first) = members.first() else { return json.to_owned() };
    let mut out = String::with_capacity(json.len());
    let slice = |from: usize, to: usize| json.get(from..to).unwrap_or_default();
    out.push_str(slice(0, at(first.raw_key)));
    let (mut any, mut behind) = (false, at(first.raw_key));
    for member in members {
        let (start, end) = (at(member.raw_key), at(member.value) + member.value.len());
        if !drop(member) {
            if any {
                out.push_str(slice(behind, start));
            }
            out.push_str(slice(start, end));
            any = true;
        }
        behind = end;
    }
    out.push_str(slice(behind, json.len()));
    out
}

/// The first key at any depth, unescaped, that `good` does not accept.
pub(crate) fn bad_key(json: &str, good: impl Fn(&str) -> bool) -> Option<Cow<'_, str>> {
    walk(json, |step| match step {
        Step::Key(key) if !good(&key) => Some(key),
        _ => None,
    })
}

/// A step of a walk through JSON.
#[derive(Debug)]
pub(crate) enum Step<'a> {
    /// An object or array begins.
    Open,
    /// It ends.
    Close,
    /// A key, unescaped; raw if it has a lone surrogate.
    Key(Cow<'a, str>),
}

/// Walks through JSON until `found` returns a value.
pub(crate) fn walk<'a, T>(
    json: &'a str,
    mut found: impl FnMut(Step<'a>) -> Option<T>,
) -> Option<T> {
    let bytes = json.as_bytes();
    // For each open bracket, whether it belongs to an object.
    let mut open: Vec<bool> = Vec::new();
    let (mut at, mut key_next) = (0, false);
    while let Some(byte) = bytes.get(at) {
        let step = match byte {
            b'"' => {
                let end = string_end(bytes, at);
                let raw = json.get(at..end).unwrap_or_default();
                at = end;
                if !std::mem::take(&mut key_next) {
                    continue;
                }
                let step = Step::Key(text(raw).unwrap_or(Cow::Borrowed(raw)));
                if let Some(found) = found(step) {
                    return Some(found);
                }
                continue;
            }
            b'{' => {
                open.push(true);
                key_next = true;
                Some(Step::Open)
            }
            b'[' => {
                open.push(false);
                Some(Step::Open)
            }
            b'}' | b']' => {
                open.pop();
                key_next = false;
                Some(Step::Close)
            }
            b',' => {
                key_next = open.last() == Some(&true);
                None
            }
            _ => None,
        };
        if let Some(found) = step.and_then(&mut found) {
            return Some(found);
        }
        at += 1;
    }
    None
}

/// The same JSON without white space.
pub(crate) fn compact(json: &str) -> String {
    let bytes = json.as_bytes();
    let mut out = String::with_capacity(json.len());
    let (mut at, mut kept) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at),
            b' ' | b'\t' | b'\n' | b'\r' => {
                out.push_str(json.get(kept..at).unwrap_or_default());
                at += 1;
                kept = at;
            }
            _ => at += 1,
        }
    }
    out.push_str(json.get(kept..).unwrap_or_default());
    out
}

/// Where the string whose opening quote is at `start` ends.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes.get(at) == Some(&b'"') {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Vec<Member<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            let (raw_key, value) = (key.get(), value.get());
            members.push(Member { key: text(raw_key), raw_key, value });
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_cut_out_and_nothing_else_changes() {
        let cases = [
            ("{}", "{}"),
            (r#"{"a":1}"#, r#"{"a":1}"#),
            (r#"{"x":1}"#, r"{}"),
            (r#"{ "x" : 1 }"#, r"{  }"),
            (r#"{"x":1,"a":2}"#, r#"{"a":2}"#),
            (r#"{"a":2,"x":1}"#, r#"{"a":2}"#),
            (r#"{"a":1.0, "x":1,  "b":"Ё" }"#, r#"{"a":1.0,  "b":"Ё" }"#),
            (r#"{"x":1,"x":2,"a":1e400}"#, r#"{"a":1e400}"#),
            (r#"{"x":{"x":1},"a":{"x":1}}"#, r#"{"a":{"x":1}}"#),
        ];
        for (json, expected) in cases {
            let members = members(json).unwrap();
            assert_eq!(without(json, &members, |member| member.is("x")), expected, "{json}");
        }
    }

    #[test]
    fn keys_are_found_at_any_depth() {
        let cases = [
            (r#"{"a":1}"#, None),
            (r#"{"bad-key":1}"#, Some("bad-key")),
            (r#"{"a":[{"b":"bad-value"},{"bad-key":0}]}"#, Some("bad-key")),
            (r#"{"a":"\"bad-key\":"}"#, None),
            (r#"{"a":{},"bad-key":1}"#, Some("bad-key")),
            (r#"{"a":["bad-","x"],"b":1}"#, None),
            (r#"{"\u0062ad-":1}"#, Some("bad-")),
            (r#"{"a":[[["x"]],{"Ключ":[{}]}]}"#, None),
        ];
        for (json, expected) in cases {
            assert_eq!(bad_key(json, |key| !key.contains('-')).as_deref(), expected, "{json}");
        }
    }

    #[test]
    fn layout_goes_and_strings_stay() {
        assert_eq!(compact("{ \"a b\" : [ 1.0 ,\n\t2e5 ] }"), r#"{"a b":[1.0,2e5]}"#);
        assert_eq!(compact(r#""\" x ""#), r#""\" x ""#);
    }
}
