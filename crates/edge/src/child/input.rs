//! Writing a child's stdin.
//!
//! Invariant: bodies are written in order, each with exactly one line feed after it.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncWriteExt, BufWriter};
use tokio::process::ChildStdin;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Small messages that wait together go out in one write of at most this size.
const BUFFER: usize = 32 * 1024;

/// Writes what waits in the queue until the child stops reading. Once `ending` is cancelled no
/// more is taken, what waits is still written, and then stdin is closed.
pub(super) async fn write(
    mut waiting: mpsc::Receiver<Bytes>,
    stdin: ChildStdin,
    ending: CancellationToken,
) -> io::Result<()> {
    let mut stdin = BufWriter::with_capacity(BUFFER, stdin);
    while let Some(body) = next(&mut waiting, &ending).await {
        stdin.write_all(&body).await?;
        stdin.write_all(b"\n").await?;
        while let Ok(body) = waiting.try_recv() {
            stdin.write_all(&body).await?;
            stdin.write_all(b"\n").await?;
        }
        stdin.flush().await?;
    }
    Ok(())
}

async fn next(waiting: &mut mpsc::Receiver<Bytes>, ending: &CancellationToken) -> Option<Bytes> {
    tokio::select! {
        biased;
        body = waiting.recv() => body,
        () = ending.cancelled() => {
            waiting.close();
            waiting.recv().await
        }
    }
}
