//! A message in pieces, so that changing an id does not copy a large message.

use bytes::{Bytes, BytesMut};
use smallvec::{SmallVec, smallvec};
use toolgate_json::edit::offset;

/// From this size on, copying costs more than handling three pieces.
const LARGE: usize = 64 * 1024;

/// One message: usually the bytes before a change, the change, and the bytes after it.
#[derive(Debug, Clone, Default)]
pub struct Pieces(SmallVec<[Bytes; 3]>);

impl Pieces {
    /// The message `raw`, which is all or a part of `whole`, with `part` replaced by `with`.
    /// `None` if `part` is not a slice of it.
    pub fn replace(whole: &Bytes, raw: &str, part: &str, with: &str) -> Option<Self> {
        let start = offset(raw, part)?;
        let after = start + part.len();
        if raw.len() < LARGE {
            let mut copy = BytesMut::with_capacity(start + with.len() + raw.len() - after);
            copy.extend_from_slice(raw.get(..start)?.as_bytes());
            copy.extend_from_slice(with.as_bytes());
            copy.extend_from_slice(raw.get(after..)?.as_bytes());
            return Some(copy.freeze().into());
        }
        let begin = raw.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
        let end = begin.checked_add(raw.len()).filter(|end| *end <= whole.len())?;
        let before = whole.slice(begin..begin + start);
        let change = Bytes::copy_from_slice(with.as_bytes());
        Some(Self(smallvec![before, change, whole.slice(begin + after..end)]))
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes and returns the first piece.
    pub fn take_first(&mut self) -> Option<Bytes> {
        self.0.iter_mut().find(|piece| !piece.is_empty()).map(std::mem::take)
    }

    /// The whole message; copied only if it is in several pieces.
    pub fn into_bytes(mut self) -> Bytes {
        let (length, first) = (self.len(), self.take_first().unwrap_or_default());
        if first.len() == length {
            return first;
        }
        let mut whole = BytesMut::with_capacity(length);
        whole.extend_from_slice(&first);
        while let Some(piece) = self.take_first() {
            whole.extend_from_slice(&piece);
        }
        whole.freeze()
    }
}

impl IntoIterator for Pieces {
    type Item = Bytes;
    type IntoIter = smallvec::IntoIter<[Bytes; 3]>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl FromIterator<Bytes> for Pieces {
    fn from_iter<I: IntoIterator<Item = Bytes>>(pieces: I) -> Self {
        Self(pieces.into_iter().collect())
    }
}

impl From<Bytes> for Pieces {
    fn from(whole: Bytes) -> Self {
        Self(smallvec![whole])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_leaves_every_other_byte() {
        for filler in [0, 10, LARGE] {
            let raw =
                format!(r#"{{"a":"{}","id":7,"b":"{}"}}"#, "x".repeat(filler), "é".repeat(filler));
            let whole = Bytes::from(format!("  {raw}\n"));
            let text = std::str::from_utf8(&whole).unwrap();
            let raw_part = text.get(2..2 + raw.len()).unwrap();
            let at = raw_part.find('7').unwrap();
            for with in ["1", "\"a longer id\""] {
                let pieces =
                    Pieces::replace(&whole, raw_part, raw_part.get(at..=at).unwrap(), with)
                        .unwrap();
                let expected = raw.replacen('7', with, 1);
                assert_eq!(pieces.len(), expected.len());
                assert_eq!(pieces.into_bytes(), expected);
            }
        }
    }

    #[test]
    fn what_is_not_a_part_is_not_replaced() {
        let large = "y".repeat(LARGE);
        for text in ["abc", &large] {
            let whole = Bytes::from(text.to_owned());
            let raw = std::str::from_utf8(&whole).unwrap();
            assert!(Pieces::replace(&whole, raw, "elsewhere", "x").is_none());
        }
        let raw = large.as_str();
        let other = Bytes::from_static(b"another buffer");
        assert!(Pieces::replace(&other, raw, raw.get(1..2).unwrap(), "x").is_none());
    }

    #[test]
    fn pieces_are_taken_in_order() {
        let mut pieces: Pieces = ["", "a", "b"].map(Bytes::from).into_iter().collect();
        assert_eq!(pieces.take_first().unwrap(), "a");
        assert_eq!(pieces.take_first().unwrap(), "b");
        assert!(pieces.take_first().is_none() && pieces.is_empty());
        assert_eq!(Pieces::default().into_bytes(), "");
    }
}
