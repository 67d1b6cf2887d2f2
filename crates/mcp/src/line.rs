//! Lines: the framing of messages over stdio.
//!
//! Invariant: never holds more than the limit and one chunk. Tested by `line/tests.rs` and
//! `fuzz/fuzz_targets/line.rs`.

use bytes::Bytes;
use memchr::memchr;

use crate::limits::TooLarge;

/// Splits a stream of chunks into lines.
#[derive(Debug)]
pub struct LineDecoder {
    max: usize,
    /// The beginning of an incomplete line.
    partial: Vec<u8>,
    broken: bool,
}

impl LineDecoder {
    /// A line may have `max` bytes, its line break not counted.
    pub fn new(max: usize) -> Self {
        Self { max, partial: Vec::new(), broken: false }
    }

    /// Passes every line that this chunk completes to `each`, without its line break (LF or CRLF);
    /// blank lines are skipped. After an error every further chunk is an error.
    pub fn push(&mut self, chunk: &[u8], each: &mut dyn FnMut(Bytes)) -> Result<(), TooLarge> {
        let mut rest = chunk;
        while let Some((line, after)) =
            memchr(b'\n', rest).and_then(|end| rest.split_at_checked(end))
        {
            self.check(line)?;
            if let Some(line) = self.complete(line) {
                each(line);
            }
            rest = after.get(1..).unwrap_or_default();
        }
        self.check(rest)?;
        self.partial.extend_from_slice(rest);
        Ok(())
    }

    /// The stream has ended: the last line, if it had no line break and is not blank.
    pub fn finish(mut self) -> Option<Bytes> {
        self.complete(&[])
    }

    fn check(&mut self, more: &[u8]) -> Result<(), TooLarge> {
        let len = self.partial.len() + more.len();
        // A carriage return at the end may belong to the line break.
        let last = more.last().or(self.partial.last());
        let counted = len - usize::from(last == Some(&b'\r'));
        if self.broken || counted > self.max {
            self.broken = true;
            self.partial = Vec::new();
            return Err(TooLarge { max: self.max });
        }
        Ok(())
    }

    fn complete(&mut self, end: &[u8]) -> Option<Bytes> {
        let mut line = if self.partial.is_empty() {
            Bytes::copy_from_slice(end)
        } else {
            let mut line = std::mem::take(&mut self.partial);
            line.extend_from_slice(end);
            Bytes::from(line)
        };
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        (!line.trim_ascii().is_empty()).then_some(line)
    }
}

#[cfg(test)]
mod tests;
