//! Writing a child's stdin.
//!
//! Invariant: bodies are written in order, each with exactly one line feed after it.
//! Invariant: a message with a last look is asked for immediately before it is written; whoever
//! sent it is told if it may not be, and then nothing of it is written.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncWriteExt, BufWriter};
use tokio::process::ChildStdin;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use toolgate_gateway::channel::LastLook;

/// Small messages that wait together go out in one write of at most this size.
const BUFFER: usize = 32 * 1024;

/// A message that waits to be written.
pub(super) struct Line {
    /// One JSON text without line breaks.
    pub(super) body: Bytes,
    /// Asked before it is written, and told whether it is.
    pub(super) look: Option<(LastLook, oneshot::Sender<bool>)>,
}

impl Line {
    /// What to write; none if it may not be written any more.
    fn take(self) -> Option<Bytes> {
        if let Some((look, tell)) = self.look {
            let allowed = look.allows();
            // Whoever sent it may be gone; then nobody waits for its answer either.
            if tell.send(allowed).is_err() || !allowed {
                return None;
            }
        }
        Some(self.body)
    }
}

/// Writes what waits in the queue until the child stops reading. Once `ending` is cancelled no
/// more is taken, what waits is still written, and then stdin is closed.
pub(super) async fn write(
    mut waiting: mpsc::Receiver<Line>,
    stdin: ChildStdin,
    ending: CancellationToken,
) -> io::Result<()> {
    let mut stdin = BufWriter::with_capacity(BUFFER, stdin);
    while let Some(line) = next(&mut waiting, &ending).await {
        write_line(&mut stdin, line).await?;
        while let Ok(line) = waiting.try_recv() {
            write_line(&mut stdin, line).await?;
        }
        stdin.flush().await?;
    }
    Ok(())
}

async fn write_line(stdin: &mut BufWriter<ChildStdin>, line: Line) -> io::Result<()> {
    if let Some(body) = line.take() {
        stdin.write_all(&body).await?;
        stdin.write_all(b"\n").await?;
    }
    Ok(())
}

async fn next(waiting: &mut mpsc::Receiver<Line>, ending: &CancellationToken) -> Option<Line> {
    tokio::select! {
        biased;
        body = waiting.recv() => body,
        () = ending.cancelled() => {
            waiting.close();
            waiting.recv().await
        }
    }
}
