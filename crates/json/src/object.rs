//! Objects read whole: every member in its order, validated by serde_json.
//!
//! Start at [`members`].

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::text::text;

/// A member of an object, as slices of the object's text.
#[derive(Debug, Clone)]
pub struct Member<'a> {
    /// The text of the key; `None` if it has a lone surrogate.
    pub key: Option<Cow<'a, str>>,
    /// The key as it is spelled, with its quotes.
    pub raw_key: &'a str,
    /// The value as it is spelled.
    pub value: &'a str,
}

impl Member<'_> {
    /// Whether the key is `key`.
    pub fn is(&self, key: &str) -> bool {
        self.key.as_deref() == Some(key)
    }
}

/// The members of an object in their order; an error if the text is anything but one object.
pub fn members(json: &str) -> Result<Vec<Member<'_>>, serde_json::Error> {
    let mut members = Vec::new();
    for_each(json, |raw_key, value| members.push(Member { key: text(raw_key), raw_key, value }))?;
    Ok(members)
}

/// The value of the first member with this key.
pub fn value<'a>(members: &[Member<'a>], key: &str) -> Option<&'a str> {
    members.iter().find(|member| member.is(key)).map(|member| member.value)
}

/// Calls `f` with each raw key and raw value of the object that `json` is; an error if the text is
/// anything but one object. `f` may have been called before an error is found.
pub fn for_each<'a>(
    json: &'a str,
    f: impl FnMut(&'a str, &'a str),
) -> Result<(), serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(json);
    reader.deserialize_map(ForEach(f))?;
    reader.end()
}

/// The object without the members for which `drop` is true; every other byte as it was.
pub fn without(json: &str, members: &[Member<'_>], drop: impl Fn(&Member<'_>) -> bool) -> String {
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

struct ForEach<F>(F);

impl<'de, F: FnMut(&'de str, &'de str)> Visitor<'de> for ForEach<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            (self.0)(key.get(), value.get());
        }
        Ok(())
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
    fn anything_but_one_object_is_an_error() {
        for json in ["", "[]", "1", "{", "{}{}", r#"{"a":}"#] {
            assert!(members(json).is_err(), "{json}");
        }
    }
}
