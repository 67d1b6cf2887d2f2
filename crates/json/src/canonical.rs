//! Canonical JSON: RFC 8785, except that numbers keep their spelling: `1`, `1.0` and `1e0` differ.
//!
//! Members are sorted by UTF-16 code units; a duplicate key is an error.

use crate::Malformed;
use crate::escape::push_quoted;
use crate::number::is_number;
use crate::walk::{Raw, Walk};

/// How deep the text may nest.
const DEPTH: usize = 128;

/// The text is not JSON, nests deeper than 128 levels, or has a duplicate key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not valid JSON, nested deeper than {DEPTH} levels, or with a duplicate key")]
pub struct NotCanonical;

/// The canonical form of a JSON text.
pub fn canonical(text: &str) -> Result<String, NotCanonical> {
    let mut out = String::with_capacity(text.len());
    write(Raw::of(text)?, DEPTH, &mut out)?;
    Ok(out)
}

impl From<Malformed> for NotCanonical {
    fn from(_: Malformed) -> Self {
        NotCanonical
    }
}

fn write(raw: Raw<'_>, depth: usize, out: &mut String) -> Result<(), NotCanonical> {
    let depth = depth.checked_sub(1).ok_or(NotCanonical)?;
    match raw.text.as_bytes().first().ok_or(NotCanonical)? {
        b'"' => push_quoted(&raw.string()?, out),
        b'[' => {
            out.push('[');
            let mut walk = Walk::list(raw.text)?;
            let mut first = true;
            while let Some(element) = walk.element()? {
                separate(&mut first, out);
                write(element, depth, out)?;
            }
            out.push(']');
        }
        b'{' => write_object(raw.text, depth, out)?,
        _ if matches!(raw.text, "null" | "true" | "false") || is_number(raw.text) => {
            out.push_str(raw.text);
        }
        _ => return Err(NotCanonical),
    }
    Ok(())
}

fn write_object(raw: &str, depth: usize, out: &mut String) -> Result<(), NotCanonical> {
    let mut walk = Walk::object(raw)?;
    let mut members = Vec::new();
    while let Some(member) = walk.member()? {
        members.push((member.name()?, member.value));
    }
    members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    if members.windows(2).any(|pair| matches!(pair, [(a, _), (b, _)] if a == b)) {
        return Err(NotCanonical);
    }
    out.push('{');
    let mut first = true;
    for (key, value) in members {
        separate(&mut first, out);
        push_quoted(&key, out);
        out.push(':');
        write(value, depth, out)?;
    }
    out.push('}');
    Ok(())
}

fn separate(first: &mut bool, out: &mut String) {
    if !std::mem::take(first) {
        out.push(',');
    }
}

#[cfg(test)]
mod tests {
    use super::{NotCanonical, canonical};

    #[test]
    fn canonical_json_is_one_spelling() {
        for (text, expected) in [
            (r#"{ "b": 1, "a": [ 1.0 , 1e0, "é" ] }"#, r#"{"a":[1.0,1e0,"é"],"b":1}"#),
            (r#"{"\u0061":"\u000a\u0001\/"}"#, "{\"a\":\"\\n\\u0001/\"}"),
            // UTF-16 order: a surrogate pair sorts before U+FF00.
            (r#"{"＀":1,"😀":2}"#, r#"{"😀":2,"＀":1}"#),
            (" null ", "null"),
            ("{}", "{}"),
        ] {
            assert_eq!(canonical(text).as_deref(), Ok(expected));
        }
        for bad in [
            r#"{"a":1,"a":1}"#,
            "{",
            "01",
            "[1 2]",
            "nul",
            "",
            "{} x",
            "[] 1",
            "\"a\" \"b\"",
            &"[".repeat(200),
        ] {
            assert_eq!(canonical(bad), Err(NotCanonical), "{bad}");
        }
    }
}
