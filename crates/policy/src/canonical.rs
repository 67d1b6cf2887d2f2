//! Canonical JSON and the argument digest.
//!
//! RFC 8785, except that numbers keep the spelling they came with: `1`, `1.0` and `1e0` differ.
//! Members are sorted by UTF-16 code units; a key that stands twice is refused.

use std::fmt;

use sha2::{Digest as _, Sha256};

use crate::json::{Items, Malformed, Value};

/// SHA-256 over canonical JSON.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

/// The text is not JSON, is nested deeper than 128 levels, or has a key twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotCanonical;

/// The digest of a call's arguments (`{}` when it has none).
pub fn argument_digest(arguments: &str) -> Result<Digest, NotCanonical> {
    canonical_json(arguments).map(|text| Digest::of(text.as_bytes()))
}

/// The canonical form of a JSON text.
pub fn canonical_json(text: &str) -> Result<String, NotCanonical> {
    let mut out = String::with_capacity(text.len());
    write(text, 128, &mut out)?;
    Ok(out)
}

impl Digest {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl From<Malformed> for NotCanonical {
    fn from(_: Malformed) -> Self {
        NotCanonical
    }
}

fn write(raw: &str, depth: usize, out: &mut String) -> Result<(), NotCanonical> {
    let depth = depth.checked_sub(1).ok_or(NotCanonical)?;
    match Value::read(raw)? {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => out.push_str(if b { "true" } else { "false" }),
        Value::Number(text) if crate::number::is_json_number(text) => out.push_str(text),
        Value::String(text) => write_string(&text, out),
        Value::List(raw) => {
            out.push('[');
            let mut items = Items::of(raw, b'[')?;
            let mut first = true;
            while let Some(item) = items.next_element()? {
                separate(&mut first, out);
                write(item.text, depth, out)?;
            }
            out.push(']');
        }
        Value::Object(raw) => write_object(raw, depth, out)?,
        Value::Number(_) | Value::Words(_) => return Err(NotCanonical),
    }
    Ok(())
}

fn write_object(raw: &str, depth: usize, out: &mut String) -> Result<(), NotCanonical> {
    let mut items = Items::of(raw, b'{')?;
    let mut members = Vec::new();
    while let Some(member) = items.next_member()? {
        members.push((member.key()?, member.value.text));
    }
    members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    if members.windows(2).any(|pair| matches!(pair, [(a, _), (b, _)] if a == b)) {
        return Err(NotCanonical);
    }
    out.push('{');
    let mut first = true;
    for (key, value) in members {
        separate(&mut first, out);
        write_string(&key, out);
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

/// A JSON string with the few escapes RFC 8785 asks for.
pub(crate) fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => {
                let code = format!("\\u{:04x}", u32::from(c));
                out.push_str(&code);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::{NotCanonical, argument_digest, canonical_json};

    #[test]
    fn canonical_json_is_one_spelling() {
        for (text, expected) in [
            (r#"{ "b": 1, "a": [ 1.0 , 1e0, "é" ] }"#, r#"{"a":[1.0,1e0,"é"],"b":1}"#),
            (r#"{"\u0061":"\u000a\u0001\/"}"#, "{\"a\":\"\\n\\u0001/\"}"),
            // UTF-16 order: a surrogate pair sorts before U+FF00.
            (r#"{"＀":1,"😀":2}"#, r#"{"😀":2,"＀":1}"#),
            ("{}", "{}"),
        ] {
            assert_eq!(canonical_json(text).as_deref(), Ok(expected));
        }
        for bad in [r#"{"a":1,"a":1}"#, "{", "01", "[1 2]", "nul", &"[".repeat(200)] {
            assert_eq!(canonical_json(bad), Err(NotCanonical), "{bad}");
        }
    }

    #[test]
    fn the_digest_is_over_the_canonical_form() {
        let digest = argument_digest("{}").unwrap().to_string();
        assert_eq!(digest, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
        assert_eq!(argument_digest(r#"{"b":1,"a":2}"#), argument_digest(r#"{ "a":2, "b":1 }"#));
        assert_ne!(argument_digest(r#"{"a":1}"#), argument_digest(r#"{"a":1.0}"#));
    }
}
