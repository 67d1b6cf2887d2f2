//! Reads JSON strings. Borrows where a string has no escapes.

use std::borrow::Cow;

use memchr::memchr;

use crate::Malformed;
use crate::skip::{string_len, trim};

/// The text of a raw JSON string; `None` if `raw` is not a string or has a lone surrogate, which
/// no text can hold.
pub fn text(raw: &str) -> Option<Cow<'_, str>> {
    let raw = trim(raw);
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if inner.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        return Some(Cow::Borrowed(inner));
    }
    let (length, _) = string_len(raw.as_bytes())?;
    if length != raw.len() || inner.bytes().any(|byte| byte < b' ') {
        return None;
    }
    unescape(inner).ok()
}

/// The text between the quotes of a raw string, with its escapes resolved.
pub fn unescape(inner: &str) -> Result<Cow<'_, str>, Malformed> {
    let Some(mut at) = memchr(b'\\', inner.as_bytes()) else {
        return Ok(Cow::Borrowed(inner));
    };
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    loop {
        let (plain, escape) = rest.split_at_checked(at).ok_or(Malformed)?;
        out.push_str(plain);
        let mut escape = escape.chars();
        escape.next();
        out.push(match escape.next().ok_or(Malformed)? {
            c @ ('"' | '\\' | '/') => c,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => code_point(&mut escape)?,
            _ => return Err(Malformed),
        });
        rest = escape.as_str();
        match memchr(b'\\', rest.as_bytes()) {
            Some(next) => at = next,
            None => break,
        }
    }
    out.push_str(rest);
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts() {
        for (raw, expected) in [
            (r#""""#, Some("")),
            (r#""plain ы""#, Some("plain ы")),
            (r#" "blanks" "#, Some("blanks")),
            (r#""\"\\\/\b\f\n\r\t\u0041\ud83d\uDE00""#, Some("\"\\/\u{8}\u{c}\n\r\tA😀")),
            (r#""\ud800""#, None),
            (r#""\ude00\ud83d""#, None),
            (r#""\u00g0""#, None),
            (r#""\x""#, None),
            (r#""\""#, None),
            ("\"a\\n\nb\"", None),
            ("\"a\u{1}\"", None),
            ("1", None),
            ("null", None),
            ("\"", None),
            ("\"a\"b\"", None),
            ("\"a\\n\"b\"", None),
            ("", None),
        ] {
            assert_eq!(text(raw).as_deref(), expected, "{raw}");
        }
        assert!(matches!(text("\"plain\""), Some(Cow::Borrowed(_))));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn reads_what_serde_json_reads(
            inner in r#"([a-zé"\n ]|\\[bfnrtux"/\\]|\\u[dD][89aAcCdD][0-9a-f]{2}|\\u00[0-9a-fg]{2}){0,12}"#,
        ) {
            let raw = format!("\"{inner}\"");
            let expected = serde_json::from_str::<String>(&raw).ok();
            prop_assert_eq!(text(&raw).map(Cow::into_owned), expected, "{}", raw);
        }
    }
}
