//! Base64 with padding, as RFC 4648 has it, and nothing but that.

const DIGITS: [u8; 64] = *b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut padded = [0; 4];
        padded.iter_mut().skip(1).zip(group).for_each(|(slot, byte)| *slot = *byte);
        let bits = u32::from_be_bytes(padded);
        for place in 0..4 {
            let index = (bits >> (18 - 6 * place)) & 63;
            let digit = DIGITS.get(index as usize).filter(|_| place <= group.len());
            out.push(digit.map_or('=', |digit| char::from(*digit)));
        }
    }
    out
}

/// The bytes; none if this is not how they are spelled.
pub(super) fn decode(encoded: &str) -> Option<Vec<u8>> {
    let (groups, rest) = encoded.as_bytes().as_chunks::<4>();
    if !rest.is_empty() {
        return None;
    }
    let mut out = Vec::with_capacity(groups.len() * 3);
    for (index, group) in groups.iter().enumerate() {
        let last = index + 1 == groups.len();
        let padding = group.iter().rev().take_while(|byte| **byte == b'=').count();
        if padding > if last { 2 } else { 0 } {
            return None;
        }
        let digits = group.iter().take(4 - padding).map(|byte| digit(*byte));
        let bits = digits.collect::<Option<Vec<u32>>>()?;
        let bits = bits.iter().fold(0, |bits, digit| bits << 6 | digit) << (6 * padding);
        let [_, bytes @ ..] = bits.to_be_bytes();
        let (kept, dropped) = bytes.split_at(3 - padding);
        if dropped.iter().any(|byte| *byte != 0) {
            return None;
        }
        out.extend_from_slice(kept);
    }
    Some(out)
}

fn digit(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}
