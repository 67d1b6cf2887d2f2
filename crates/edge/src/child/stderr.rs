//! The stderr of a child, logged and bounded.
//!
//! Invariant: stderr is always read, however much arrives, so that the child never blocks on it;
//! memory holds one buffer and one line.
//! Invariant: stderr goes only to the log and to the last lines that administrators can read, without
//! the secrets that toolgate gave to the child.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, timeout_at};

use toolgate_gateway::{LogLimit, LogTail};

/// Longer lines are cut.
const LONGEST: usize = 8 * 1024;
/// Further lines in a second are counted instead of logged.
const LINES_A_SECOND: u32 = 100;
const BUFFER: usize = 32 * 1024;

/// Where the lines of a child go.
pub(super) struct StderrTarget {
    pub(super) server: Arc<str>,
    pub(super) written: StderrWritten,
    pub(super) tail: Arc<LogTail>,
    pub(super) secrets: Arc<Secrets>,
}

/// Logs everything until the pipe closes.
pub(super) async fn log(target: StderrTarget, mut stderr: impl AsyncRead + Unpin) {
    let mut lines = Lines::new(target);
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = stderr.read(&mut buffer);
        let read = match lines.log_limit.due() {
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

/// Whether a child has written to stderr, for the report of its exit.
#[derive(Debug, Clone, Default)]
pub(super) struct StderrWritten(Arc<AtomicBool>);

impl StderrWritten {
    /// Adds to `what` where to read more.
    pub(super) fn after(&self, what: String) -> String {
        if self.0.load(Ordering::Relaxed) {
            return format!("{what}; its stderr is in the log of toolgate");
        }
        what
    }
}

/// Values given to a child that must not appear in the log.
#[derive(Debug, Default)]
pub(super) struct Secrets(Vec<String>);

/// Shorter values are too common to be masked.
const SHORTEST_SECRET: usize = 6;

impl Secrets {
    /// Each line of a value separately, because the log is masked line by line.
    pub(super) fn new(values: &[String]) -> Self {
        let lines = values.iter().flat_map(|value| value.lines()).map(str::trim);
        let mut lines: Vec<_> =
            lines.filter(|line| line.len() >= SHORTEST_SECRET).map(str::to_owned).collect();
        // A value that contains another one is replaced before it.
        lines.sort_by_key(|line| std::cmp::Reverse(line.len()));
        Self(lines)
    }

    /// The line with secrets masked.
    pub(super) fn masked(&self, line: String) -> String {
        let masked = |line: String, secret: &String| {
            if line.contains(secret) { line.replace(secret, "***") } else { line }
        };
        self.0.iter().fold(line, masked)
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

/// Splits the stream into lines.
struct Lines {
    target: StderrTarget,
    log_limit: LogLimit,
    /// The beginning of an unfinished line, at most [`LONGEST`].
    begun: Vec<u8>,
}

impl Lines {
    fn new(target: StderrTarget) -> Self {
        let log_limit = LogLimit::new(LINES_A_SECOND, Duration::from_secs(1), Instant::now());
        Self { target, log_limit, begun: Vec::new() }
    }

    fn push(&mut self, mut chunk: &[u8]) {
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            let (line, rest) = chunk.split_at(end);
            chunk = rest.get(1..).unwrap_or_default();
            if self.begun.is_empty() {
                let line = line.get(..LONGEST).unwrap_or(line);
                self.log_line(line);
            } else {
                self.begin(line);
                self.finish();
            }
        }
        self.begin(chunk);
    }

    fn begin(&mut self, part: &[u8]) {
        let room = LONGEST - self.begun.len().min(LONGEST);
        self.begun.extend_from_slice(part.get(..room).unwrap_or(part));
    }

    fn finish(&mut self) {
        let line = std::mem::take(&mut self.begun);
        self.log_line(&line);
    }

    fn log_line(&mut self, line: &[u8]) {
        if !line.trim_ascii().is_empty() {
            self.target.written.0.store(true, Ordering::Relaxed);
        }
        if self.log_limit.take() {
            let line = self.target.secrets.masked(printable(line));
            tracing::info!(server = %self.target.server, "stderr: {line}");
            self.target.tail.push(&line);
        }
    }

    fn renew(&mut self) {
        let suppressed = self.log_limit.renew(Instant::now());
        self.log_suppressed(suppressed);
    }

    fn end(&mut self) {
        if !self.begun.is_empty() {
            self.finish();
        }
        let suppressed = self.log_limit.take_suppressed();
        self.log_suppressed(suppressed);
    }

    fn log_suppressed(&self, suppressed: u64) {
        if suppressed > 0 {
            tracing::info!(server = %self.target.server, suppressed, "stderr lines suppressed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]]) -> (Lines, String) {
        let mut lines = Lines::new(StderrTarget {
            server: "s".into(),
            written: StderrWritten::default(),
            tail: Arc::default(),
            secrets: Arc::default(),
        });
        for chunk in chunks {
            lines.push(chunk);
        }
        let report = lines.target.written.after("x".to_owned());
        (lines, report)
    }

    #[test]
    fn a_report_names_the_log_and_repeats_nothing_of_stderr() {
        const WROTE: &str = "x; its stderr is in the log of toolgate";
        let cases: [(&[&[u8]], &str); 5] = [
            (&[], "x"),
            (&[b"\n  \n"], "x"),
            (&[b"one\ntwo\n"], WROTE),
            (&[b"on", b"e\n", b"\n"], WROTE),
            (&[b"a\x1b[2Jb\r\n"], WROTE),
        ];
        for (chunks, expected) in cases {
            assert_eq!(lines(chunks).1, expected, "{chunks:?}");
        }
    }

    #[test]
    fn secrets_of_the_child_are_not_logged() {
        let values = ["key-0123456789", "key-0123456789-long", "short", "first line\nlast line\n"];
        let secrets = Secrets::new(&values.map(str::to_owned));
        for (line, expected) in [
            ("no key here", "no key here"),
            ("bad key key-0123456789!", "bad key ***!"),
            ("key-0123456789-long, key-0123456789", "***, ***"),
            ("short stays", "short stays"),
            ("the last line of it", "the *** of it"),
        ] {
            assert_eq!(secrets.masked(line.to_owned()), expected);
        }
    }

    #[test]
    fn a_line_without_end_costs_one_line() {
        let chunk = vec![b'x'; 100_000];
        let (lines, _) = lines(&[&chunk, &chunk, &chunk]);
        assert_eq!(lines.begun.len(), LONGEST);
    }
}
