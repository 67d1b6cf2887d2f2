//! Where things end in JSON text: blanks, strings, values.
//!
//! Invariant: nothing is judged here but where it ends. Brackets are counted, not matched.

use memchr::memchr2;
use wide::u8x16;

use super::Malformed;

const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// The text without blanks around it. Nearly always there are none, so that is asked first.
#[inline]
pub(super) fn trim(text: &str) -> &str {
    match text.as_bytes() {
        [first, .., last] if !is_blank(*first) && !is_blank(*last) => text,
        _ => text.trim_matches(BLANKS),
    }
}

/// The first place from `at` on that is no blank.
#[inline]
pub(super) fn blanks(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|byte| is_blank(*byte)) {
        at += 1;
    }
    at
}

/// One past the closing quote of the string that opens at `at`, and whether it has escapes.
#[inline]
pub(super) fn string_end(bytes: &[u8], at: usize) -> Result<(usize, bool), Malformed> {
    let mut at = at + 1;
    let mut escaped = false;
    loop {
        let rest = bytes.get(at..).ok_or(Malformed)?;
        let stop = quote_or_backslash(rest).ok_or(Malformed)?;
        if rest.get(stop) == Some(&b'"') {
            return Ok((at + stop + 1, escaped));
        }
        escaped = true;
        at += stop + 2;
    }
}

/// Keys and most values are shorter than sixteen bytes. Comparing those here takes a handful of
/// instructions; `memchr` needs several times as many before it looks at the first byte, and is
/// the better one for what is long.
#[inline]
fn quote_or_backslash(text: &[u8]) -> Option<usize> {
    let Some((first, rest)) = text.split_first_chunk::<16>() else {
        return text.iter().position(|byte| matches!(byte, b'"' | b'\\'));
    };
    let block = u8x16::new(*first);
    let stops = block.simd_eq(u8x16::splat(b'"')) | block.simd_eq(u8x16::splat(b'\\'));
    match stops.to_bitmask() {
        0 => memchr2(b'"', b'\\', rest).map(|stop| stop + 16),
        // One bit for each byte, the first byte lowest.
        stops => usize::try_from(stops.trailing_zeros()).ok(),
    }
}

/// One past the value that begins at `at`, and whether it is a string with escapes.
#[inline]
pub(super) fn value_end(bytes: &[u8], at: usize) -> Result<(usize, bool), Malformed> {
    match bytes.get(at).ok_or(Malformed)? {
        b'"' => string_end(bytes, at),
        b'{' | b'[' => nested_end(bytes, at).map(|end| (end, false)),
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

/// One past the object or list that opens at `at`.
fn nested_end(bytes: &[u8], mut at: usize) -> Result<usize, Malformed> {
    let mut depth = 0usize;
    loop {
        match bytes.get(at).ok_or(Malformed)? {
            b'"' => {
                (at, _) = string_end(bytes, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Ok(at);
        }
    }
}
