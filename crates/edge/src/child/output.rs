//! Reading a child's stdout: one message per line.
//!
//! Invariant: lines that cannot be messages are skipped and logged, never passed on.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;
use toolgate_gateway::channel::Inbox;
use toolgate_mcp::LineDecoder;

use super::stderr::{Secrets, printable};
use toolgate_gateway::LogLimit;

/// The size of a pipe.
const BUFFER: usize = 64 * 1024;
/// How much of a stray line is logged.
const SHOWN: usize = 200;
const WARNINGS_A_MINUTE: u32 = 10;

/// Why reading has ended.
#[derive(Debug)]
pub(super) enum OutputEnd {
    Closed,
    TooLong { limit: usize },
}

/// Passes every message to `inbox` until the pipe closes or a line is too long.
pub(super) async fn read(
    mut stray_lines: StrayLines,
    mut stdout: impl AsyncRead + Unpin,
    max_line: usize,
    inbox: Arc<dyn Inbox>,
) -> OutputEnd {
    let mut decoder = LineDecoder::new(max_line);
    let mut deliver = |line: Bytes| {
        if matches!(line.trim_ascii_start().first(), Some(b'{' | b'[')) {
            inbox.message(line);
        } else {
            stray_lines.mention(&line);
        }
    };
    let mut buffer = vec![0; BUFFER];
    loop {
        match stdout.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(count) => {
                let chunk = buffer.get(..count).unwrap_or_default();
                if decoder.push(chunk, &mut deliver).is_err() {
                    return OutputEnd::TooLong { limit: max_line };
                }
            }
        }
    }
    if let Some(line) = decoder.finish() {
        deliver(line);
    }
    OutputEnd::Closed
}

/// Lines on stdout that are not messages: a mistake of the server, reported to people.
pub(super) struct StrayLines {
    server: Arc<str>,
    secrets: Arc<Secrets>,
    warnings: LogLimit,
}

impl StrayLines {
    pub(super) fn new(server: Arc<str>, secrets: Arc<Secrets>) -> Self {
        let minute = Duration::from_mins(1);
        let warnings = LogLimit::new(WARNINGS_A_MINUTE, minute, Instant::now());
        Self { server, secrets, warnings }
    }

    fn mention(&mut self, line: &[u8]) {
        let shown = line.get(..SHOWN).unwrap_or(line);
        let shown = self.secrets.masked(printable(shown));
        tracing::debug!(server = %self.server, "stray line on stdout: {shown}");
        if self.warnings.allows(Instant::now()) {
            tracing::warn!(
                server = %self.server,
                "server prints lines on stdout that are not MCP messages; they belong on stderr"
            );
        }
    }
}
