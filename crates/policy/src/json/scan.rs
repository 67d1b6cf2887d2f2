//! Where things end in JSON text: blanks, strings, values.
//!
//! Invariant: nothing is judged here but where it ends. Brackets are counted, not matched.

use toolgate_mcp::skip::{nested_len, string_len};

use super::Malformed;

const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// The text without blanks around it. Nearly always there are none, so that is asked first.
#[inline(always)]
pub(super) fn trim(text: &str) -> &str {
    match text.as_bytes() {
        [first, .., last] if !is_blank(*first) && !is_blank(*last) => text,
        _ => text.trim_matches(BLANKS),
    }
}

/// The first place from `at` on that is no blank.
#[inline(always)]
pub(super) fn blanks(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|byte| is_blank(*byte)) {
        at += 1;
    }
    at
}

/// One past the closing quote of the string that opens at `at`, and whether it has escapes.
#[inline(always)]
pub(super) fn string_end(bytes: &[u8], at: usize) -> Result<(usize, bool), Malformed> {
    let (length, escaped) = string_len(bytes.get(at..).ok_or(Malformed)?).ok_or(Malformed)?;
    Ok((at + length, escaped))
}

/// One past the value that begins at `at`, and whether it is a string with escapes.
#[inline(always)]
pub(super) fn value_end(bytes: &[u8], at: usize) -> Result<(usize, bool), Malformed> {
    match bytes.get(at).ok_or(Malformed)? {
        b'"' => string_end(bytes, at),
        b'{' | b'[' => {
            let length = bytes.get(at..).and_then(nested_len).ok_or(Malformed)?;
            Ok((at + length, false))
        }
        _ => {
            let rest = bytes.get(at..).ok_or(Malformed)?;
            let ends = |b: &u8| is_blank(*b) || matches!(b, b',' | b'}' | b']' | b':');
            match rest.iter().position(ends).unwrap_or(rest.len()) {
                0 => Err(Malformed),
                length => Ok((at + length, false)),
            }
        }
    }
}
