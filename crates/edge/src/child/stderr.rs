//! What a child says to people: its stderr, logged and bounded.
//!
//! Invariant: stderr is always read, however much comes, so that the child never blocks on it;
//! memory holds one buffer and one line.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, timeout_at};

use super::allowance::Allowance;

/// Longer lines are cut.
const LONGEST: usize = 8 * 1024;
/// More lines in a second are counted instead of logged.
const LINES_A_SECOND: u32 = 100;
/// How much of the last line goes into the report of an exit.
const LAST_WORDS: usize = 300;
const BUFFER: usize = 32 * 1024;

/// Logs everything until the pipe closes.
pub(super) async fn log(
    server: Arc<str>,
    mut stderr: impl AsyncRead + Unpin,
    last_words: LastWords,
) {
    let mut lines = Lines::new(server, last_words);
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = stderr.read(&mut buffer);
        let read = match lines.allowance.due() {
            None => Ok(read.await),
            Some(due) => timeout_at(due, read).await,
        };
        lines.renew();
        match read {
            Err(_) => {}
            Ok(Ok(0) | Err(_)) => return lines.end(),
            Ok(Ok(count)) => lines.push(buffer.get(..count).unwrap_or_default()),
        }
    }
}

/// The last line that a child has said, for the report of its exit.
#[derive(Debug, Clone, Default)]
pub(super) struct LastWords(Arc<Mutex<Vec<u8>>>);

impl LastWords {
    fn set(&self, line: &[u8]) {
        let mut words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        words.clear();
        words.extend(line.iter().take(LAST_WORDS));
    }

    /// `what` happened, and what the child said last.
    pub(super) fn after(&self, what: String) -> String {
        let words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if words.is_empty() {
            return what;
        }
        format!("{what}; it last said on stderr: `{}`", printable(&words))
    }
}

/// Bytes as text that cannot move the reader's cursor or forge a log line.
pub(super) fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .trim_end()
        .chars()
        .map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c })
        .collect()
}

/// Cuts the stream into lines.
struct Lines {
    server: Arc<str>,
    last_words: LastWords,
    allowance: Allowance,
    /// The beginning of a line whose end has not come yet, at most [`LONGEST`].
    begun: Vec<u8>,
}

impl Lines {
    fn new(server: Arc<str>, last_words: LastWords) -> Self {
        let allowance = Allowance::new(LINES_A_SECOND, Duration::from_secs(1), Instant::now());
        Self { server, last_words, allowance, begun: Vec::new() }
    }

    fn push(&mut self, mut chunk: &[u8]) {
        let mut last = None;
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            let (line, rest) = chunk.split_at(end);
            chunk = rest.get(1..).unwrap_or_default();
            if self.begun.is_empty() {
                let line = line.get(..LONGEST).unwrap_or(line);
                self.say(line);
                last = Some(line).filter(|line| !line.trim_ascii().is_empty()).or(last);
            } else {
                self.begin(line);
                self.finish();
                last = None;
            }
        }
        if let Some(line) = last {
            self.last_words.set(line);
        }
        self.begin(chunk);
    }

    fn begin(&mut self, part: &[u8]) {
        let room = LONGEST - self.begun.len().min(LONGEST);
        self.begun.extend_from_slice(part.get(..room).unwrap_or(part));
    }

    fn finish(&mut self) {
        let line = std::mem::take(&mut self.begun);
        self.say(&line);
        if !line.trim_ascii().is_empty() {
            self.last_words.set(&line);
        }
    }

    fn say(&mut self, line: &[u8]) {
        if self.allowance.take() {
            tracing::info!(server = %self.server, "stderr: {}", printable(line));
        }
    }

    fn renew(&mut self) {
        let left_out = self.allowance.renew(Instant::now());
        self.tell(left_out);
    }

    fn end(&mut self) {
        if !self.begun.is_empty() {
            self.finish();
        }
        let left_out = self.allowance.settle();
        self.tell(left_out);
    }

    fn tell(&self, left_out: u64) {
        if left_out > 0 {
            tracing::info!(server = %self.server, "{left_out} lines of stderr left out");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]]) -> (Lines, String) {
        let mut lines = Lines::new("s".into(), LastWords::default());
        for chunk in chunks {
            lines.push(chunk);
        }
        let words = lines.last_words.after("x".to_owned());
        (lines, words)
    }

    #[test]
    fn the_last_line_that_says_something_is_kept() {
        let cases: [(&[&[u8]], &str); 6] = [
            (&[], "x"),
            (&[b"one\ntwo\n"], "x; it last said on stderr: `two`"),
            (&[b"one\n\n  \n"], "x; it last said on stderr: `one`"),
            (&[b"on", b"e\n", b"\n"], "x; it last said on stderr: `one`"),
            (&[b"zero\non", b"e\ntwo\nth", b"ree"], "x; it last said on stderr: `two`"),
            (&[b"a\x1b[2Jb\r\n"], "x; it last said on stderr: `a\u{fffd}[2Jb`"),
        ];
        for (chunks, expected) in cases {
            assert_eq!(lines(chunks).1, expected, "{chunks:?}");
        }
    }

    #[test]
    fn a_line_without_end_costs_one_line() {
        let chunk = vec![b'x'; 100_000];
        let (lines, _) = lines(&[&chunk, &chunk, &chunk]);
        assert_eq!(lines.begun.len(), LONGEST);
    }
}
