//! Finds where a JSON string, object or array ends, without judging its syntax.
//!
//! Objects and arrays are skipped in blocks of 64 bytes: four bit masks (quotes, backslashes,
//! opening and closing brackets) are made of each block, brackets inside strings are masked out,
//! and the rest is counted. This is several times as fast as reading token by token, and has no
//! unsafe code. Inside a long string the scan jumps to the next quote or backslash.
//!
//! Invariant: for valid JSON the end is exact. For other text it may be wrong; a parser that
//! validates the text rejects it then. Nothing panics or recurses.
//! Start at [`value_len`] and [`nested_len`]. Tested by `skip/tests.rs` against a naive scan.

use memchr::memchr2;
use wide::u8x16;

#[cfg(test)]
mod tests;

const BLOCK: usize = 64;

/// The escapes of a string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Escapes {
    /// It has none, or the value is not a string.
    #[default]
    None,
    /// It has escapes.
    Some,
    /// At least one escape is a surrogate, paired or not.
    Surrogate,
}

#[inline]
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// The text without blanks around it. Nearly always it has none, so that is checked first.
#[inline]
pub fn trim(text: &str) -> &str {
    match text.as_bytes() {
        [first, .., last] if !is_blank(*first) && !is_blank(*last) => text,
        _ => text.trim_matches([' ', '\t', '\n', '\r']),
    }
}

/// The length of the value at the start of `json`, and the escapes it has if it is a string.
/// `None` if it does not end. A scalar ends at the next blank or punctuation.
#[inline]
pub fn value_len(json: &[u8]) -> Option<(usize, Escapes)> {
    match json.first()? {
        b'"' => string_len(json),
        b'{' | b'[' => nested_len(json).map(|length| (length, Escapes::None)),
        _ => {
            let ends = |b: &u8| is_blank(*b) || matches!(b, b',' | b'}' | b']' | b':');
            match json.iter().position(ends).unwrap_or(json.len()) {
                0 => None,
                length => Some((length, Escapes::None)),
            }
        }
    }
}

/// The length of the object or array at the start of `json`; `None` if it does not end.
pub fn nested_len(json: &[u8]) -> Option<usize> {
    let mut scan = Scan::default();
    let (read, end) = scan.blocks(json);
    if end.is_some() {
        return end;
    }
    let rest = json.get(read..)?;
    let mut last = [b' '; BLOCK];
    last.get_mut(..rest.len())?.copy_from_slice(rest);
    scan.block(&last).map(|end| read + end)
}

/// Finds the end of an object or array that arrives in pieces.
#[derive(Debug, Default)]
pub struct Follow {
    scan: Scan,
    /// Less than a block, not scanned yet.
    rest: Vec<u8>,
}

impl Follow {
    /// Scans the next piece. Returns the bytes after the end if the end is in this piece.
    pub fn piece(&mut self, mut piece: &[u8]) -> Option<Vec<u8>> {
        if !self.rest.is_empty() {
            let missing = BLOCK - self.rest.len();
            let (first, others) = piece.split_at_checked(missing).unwrap_or((piece, &[]));
            self.rest.extend_from_slice(first);
            piece = others;
            let block = *self.rest.first_chunk::<BLOCK>()?;
            self.rest.clear();
            if let Some(end) = self.scan.block(&block) {
                return Some([block.get(end..)?, piece].concat());
            }
        }
        let (read, end) = self.scan.blocks(piece);
        if let Some(end) = end {
            return piece.get(end..).map(<[u8]>::to_vec);
        }
        self.rest.extend_from_slice(piece.get(read..)?);
        None
    }

    /// Ends the input. Returns the bytes after the end if the end was in the last piece.
    pub fn last(mut self) -> Option<Vec<u8>> {
        let mut last = [b' '; BLOCK];
        last.get_mut(..self.rest.len())?.copy_from_slice(&self.rest);
        let end = self.scan.block(&last)?;
        self.rest.get(end..).map(<[u8]>::to_vec)
    }
}

/// The length of the string at the start of `json`, quotes included, and its escapes; `None` if
/// `json` does not start with a string or the string does not end.
#[inline]
pub fn string_len(json: &[u8]) -> Option<(usize, Escapes)> {
    let mut at = (json.first() == Some(&b'"')).then_some(1)?;
    let mut escapes = Escapes::None;
    loop {
        at += quote_or_backslash(json.get(at..)?)?;
        if json.get(at) == Some(&b'"') {
            return Some((at + 1, escapes));
        }
        let surrogate = matches!(json.get(at + 1..at + 3), Some([b'u', b'd' | b'D']));
        escapes = escapes.max(if surrogate { Escapes::Surrogate } else { Escapes::Some });
        at += 2;
    }
}

/// Keys and most values are shorter than sixteen bytes. Comparing those here takes a handful of
/// instructions; `memchr` needs several times as many before it reads the first byte, and is
/// better for long text.
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

/// State between blocks.
#[derive(Debug, Default)]
struct Scan {
    /// 1 if a backslash in the block before escapes the first byte of the next.
    escaped: u64,
    /// All ones if the next block begins inside a string.
    in_string: u64,
    depth: u64,
    /// The previous block was only text inside a string; more of it probably follows, which a
    /// quicker search skips.
    in_text: bool,
}

impl Scan {
    /// Scans all whole blocks: the number of bytes scanned, and where the outermost bracket
    /// closes, if it does.
    fn blocks(&mut self, json: &[u8]) -> (usize, Option<usize>) {
        let mut at = 0;
        while let Some(block) = json.get(at..).and_then(|rest| rest.first_chunk::<BLOCK>()) {
            if let Some(end) = self.block(block) {
                return (at, Some(at + end));
            }
            at += BLOCK;
            if self.in_text {
                let rest = json.get(at..).unwrap_or_default();
                at += memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
            }
        }
        (at, None)
    }

    /// Where in the block the outermost bracket closes, if it does.
    #[inline]
    fn block(&mut self, block: &[u8; BLOCK]) -> Option<usize> {
        let block = lanes(block);
        let quotes = mask(&block, b'"');
        let backslashes = mask(&block, b'\\');
        self.in_text = self.in_string != 0 && quotes | backslashes | self.escaped == 0;
        if self.in_text {
            return None;
        }
        // `[` and `{`, and `]` and `}`, differ in one bit.
        let folded = block.map(|lane| lane | u8x16::splat(0x20));
        let outside = !self.strings(quotes, backslashes);
        let opens = mask(&folded, b'{') & outside;
        let closes = mask(&folded, b'}') & outside;
        if opens | closes == 0 {
            return None;
        }
        let closing = u64::from(closes.count_ones());
        if self.depth > closing {
            self.depth = self.depth + u64::from(opens.count_ones()) - closing;
            return None;
        }
        self.bracket_by_bracket(opens, closes)
    }

    /// The bytes inside strings, with their opening quotes.
    #[inline]
    fn strings(&mut self, quotes: u64, backslashes: u64) -> u64 {
        let escaped = if backslashes == 0 {
            std::mem::take(&mut self.escaped)
        } else {
            self.escapes(backslashes)
        };
        // Each bit becomes the parity of the quotes up to it.
        let mut strings = quotes & !escaped;
        for shift in [1, 2, 4, 8, 16, 32] {
            strings ^= strings << shift;
        }
        strings ^= self.in_string;
        self.in_string = 0_u64.wrapping_sub(strings >> 63);
        strings
    }

    /// The bytes that a backslash before them escapes: those after an odd run of backslashes.
    #[inline]
    fn escapes(&mut self, backslashes: u64) -> u64 {
        const EVEN: u64 = 0x5555_5555_5555_5555;
        let backslashes = backslashes & !self.escaped;
        let follows = (backslashes << 1) | self.escaped;
        let odd_starts = backslashes & !EVEN & !follows;
        let (sequences, overflow) = odd_starts.overflowing_add(backslashes);
        self.escaped = u64::from(overflow);
        (EVEN ^ (sequences << 1)) & follows
    }

    /// For the few blocks in which the outermost bracket may close.
    #[cold]
    fn bracket_by_bracket(&mut self, opens: u64, closes: u64) -> Option<usize> {
        let mut both = opens | closes;
        while both != 0 {
            let bit = both & both.wrapping_neg();
            if opens & bit != 0 {
                self.depth += 1;
            } else {
                self.depth = self.depth.checked_sub(1)?;
                if self.depth == 0 {
                    return usize::try_from(bit.trailing_zeros()).ok().map(|bit| bit + 1);
                }
            }
            both ^= bit;
        }
        None
    }
}

/// A block as the machine compares it, sixteen bytes at once.
type Lanes = [u8x16; BLOCK / 16];

#[inline]
fn lanes(block: &[u8; BLOCK]) -> Lanes {
    let (chunks, _) = block.as_chunks::<16>();
    let mut lanes = [u8x16::ZERO; BLOCK / 16];
    for (lane, chunk) in lanes.iter_mut().zip(chunks) {
        *lane = u8x16::new(*chunk);
    }
    lanes
}

/// One bit for each byte that is `byte`, the first byte lowest.
#[inline]
fn mask(lanes: &Lanes, byte: u8) -> u64 {
    let byte = u8x16::splat(byte);
    lanes
        .iter()
        .rev()
        .fold(0, |mask, lane| (mask << 16) | u64::from(lane.simd_eq(byte).to_bitmask()))
}
