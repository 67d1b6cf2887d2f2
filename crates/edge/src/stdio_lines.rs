//! Lines of a client on standard input.
//!
//! Invariant: a line that is too long is skipped and reported; the next one is read.

use std::collections::VecDeque;

use bytes::Bytes;
use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio_util::sync::CancellationToken;
use toolgate_mcp::write;

use crate::stdio_output::Output;

const CHUNK: usize = 64 * 1024;

/// The answer to a line over the limit.
pub(crate) fn too_long(limit: usize) -> Bytes {
    let why = format!(
        "the message is larger than {limit} bytes (`limits.body` in toolgate.yaml); it was not \
         processed"
    );
    write::error(None, toolgate_mcp::code::INVALID_REQUEST, &why, None)
}

/// One line of the input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A message.
    Message(Bytes),
    /// A line over the limit; its content is dropped.
    TooLong,
}

/// Reads the lines of an input, as long as the output has room for answers.
pub(crate) struct LineReader<R> {
    input: R,
    chunk: Vec<u8>,
    /// `None` after the end of the input.
    lines: Option<Lines>,
    complete: VecDeque<Line>,
}

#[derive(Debug)]
pub(crate) struct Lines {
    max: usize,
    /// The beginning of an incomplete line.
    partial: Vec<u8>,
    /// The rest of the line is dropped.
    skipping: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// A reader of lines of at most `max` bytes.
    pub(crate) fn new(input: R, max: usize) -> Self {
        let (lines, complete) = (Some(Lines::new(max)), VecDeque::new());
        Self { input, chunk: vec![0; CHUNK], lines, complete }
    }

    /// The next line; `None` at the end of the input, or once `stop` is cancelled and all lines that
    /// were read are returned.
    pub(crate) async fn next(&mut self, out: &Output, stop: &CancellationToken) -> Option<Line> {
        while self.complete.is_empty() {
            let lines = self.lines.as_mut()?;
            let read = tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                read = async { out.room().await; self.input.read(&mut self.chunk).await } => read,
            };
            match read {
                Ok(0) | Err(_) => self.complete.extend(self.lines.take().and_then(Lines::finish)),
                Ok(length) => {
                    let chunk = self.chunk.get(..length).unwrap_or_default();
                    self.complete.extend(lines.push(chunk));
                }
            }
        }
        self.complete.pop_front()
    }
}

impl Lines {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, partial: Vec::new(), skipping: false }
    }

    /// The lines that this chunk completes; blank ones are left out.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Vec<Line> {
        let (mut lines, mut rest) = (Vec::new(), chunk);
        while let Some((line, after)) =
            memchr(b'\n', rest).and_then(|end| rest.split_at_checked(end))
        {
            lines.extend(self.add(line));
            lines.extend(self.complete());
            rest = after.get(1..).unwrap_or_default();
        }
        lines.extend(self.add(rest));
        lines
    }

    /// The last line, if it had no line break.
    pub(crate) fn finish(mut self) -> Option<Line> {
        self.complete()
    }

    fn add(&mut self, more: &[u8]) -> Option<Line> {
        if self.skipping {
            return None;
        }
        if self.partial.len() + more.len() > self.max {
            self.partial = Vec::new();
            self.skipping = true;
            return Some(Line::TooLong);
        }
        self.partial.extend_from_slice(more);
        None
    }

    fn complete(&mut self) -> Option<Line> {
        self.skipping = false;
        let line = std::mem::take(&mut self.partial);
        let line = line.trim_ascii();
        (!line.is_empty()).then(|| Line::Message(Bytes::copy_from_slice(line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &'static str) -> Line {
        Line::Message(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn lines_do_not_depend_on_chunks() {
        let input = b"{\"a\":1}\r\n\n  \nxxxxxxxxxxxx\n{}\nlast";
        for size in 1..=input.len() {
            let mut lines = Lines::new(8);
            let mut found: Vec<Line> =
                input.chunks(size).flat_map(|chunk| lines.push(chunk)).collect();
            found.extend(lines.finish());
            let expected = [message("{\"a\":1}"), Line::TooLong, message("{}"), message("last")];
            assert_eq!(found, expected, "chunks of {size}");
        }
    }
}
