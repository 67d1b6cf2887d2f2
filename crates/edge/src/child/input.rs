//! Writing a child's stdin.
//!
//! Invariant: bodies are written in order, each with exactly one line feed after it.
//! Invariant: a message with a last look is checked whenever writing its first byte is tried, also
//! after the child has not read for long. The sender is notified when writing begins, or that it is
//! not allowed; then nothing is written.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use tokio::process::ChildStdin;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use toolgate_gateway::channel::FinalCheck;

/// A message that waits to be written.
pub(super) struct Line {
    /// One JSON text without line breaks.
    pub(super) body: Bytes,
    /// Checked before it is written; the sender receives the result.
    pub(super) look: Option<(FinalCheck, oneshot::Sender<bool>)>,
}

/// Writes queued messages until the child stops reading. After `ending` is cancelled no more are
/// accepted, the queued ones are written, and stdin is closed.
pub(super) async fn write(
    mut waiting: mpsc::Receiver<Line>,
    mut stdin: ChildStdin,
    ending: CancellationToken,
) -> io::Result<()> {
    while let Some(line) = next(&mut waiting, &ending).await {
        let mut current = Writing::new(line);
        poll_fn(|context| current.poll(Pin::new(&mut stdin), context)).await?;
    }
    Ok(())
}

/// A message that is being written.
struct Writing {
    /// The body with its line feed.
    text: Vec<u8>,
    done: usize,
    look: Option<(FinalCheck, oneshot::Sender<bool>)>,
}

impl Writing {
    fn new(line: Line) -> Self {
        let mut text = Vec::with_capacity(line.body.len() + 1);
        text.extend_from_slice(&line.body);
        text.push(b'\n');
        Self { text, done: 0, look: line.look }
    }

    /// Writes as much as the child accepts. Ready when everything is written, or nothing may be.
    fn poll(
        &mut self,
        mut stdin: Pin<&mut impl AsyncWrite>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while let Some(rest) = self.text.get(self.done..).filter(|rest| !rest.is_empty()) {
            if let Some((look, report)) = &self.look
                && (report.is_closed() || !look.allows())
            {
                // If the sender is gone, its agent has already received a failure.
                self.begun(false);
                return Poll::Ready(Ok(()));
            }
            let written = ready!(stdin.as_mut().poll_write(context, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.done += written;
            self.begun(true);
        }
        Poll::Ready(Ok(()))
    }

    fn begun(&mut self, is_written: bool) {
        if let Some((_, report)) = self.look.take()
            && report.send(is_written).is_err()
        {
            tracing::trace!("sender of a message is gone");
        }
    }
}

async fn next(waiting: &mut mpsc::Receiver<Line>, ending: &CancellationToken) -> Option<Line> {
    tokio::select! {
        biased;
        line = waiting.recv() => line,
        () = ending.cancelled() => {
            waiting.close();
            waiting.recv().await
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn what_waits_for_a_child_that_does_not_read_is_looked_at_when_it_reads() {
        for allowed in [true, false] {
            let (mut stdin, mut child) = tokio::io::duplex(4);
            let may = Arc::new(AtomicBool::new(true));
            let (report, mut reported) = oneshot::channel();
            let look = FinalCheck::new({
                let may = Arc::clone(&may);
                move || may.load(Ordering::SeqCst)
            });
            let mut full = Writing::new(Line { body: "abc".into(), look: None });
            poll_fn(|context| full.poll(Pin::new(&mut stdin), context)).await.unwrap();
            let line = Line { body: "call".into(), look: Some((look, report)) };
            let mut writing = Writing::new(line);
            let mut poll = poll_fn(|context| {
                Poll::Ready(writing.poll(Pin::new(&mut stdin), context).is_pending())
            });
            assert!((&mut poll).await, "the child does not read");
            assert!(reported.try_recv().is_err(), "nothing of it is written yet");
            may.store(allowed, Ordering::SeqCst);
            let mut read = [0; 4];
            child.read_exact(&mut read).await.unwrap();
            assert_eq!(&read, b"abc\n");
            poll.await;
            assert_eq!(reported.try_recv(), Ok(allowed));
            drop(stdin);
            let mut rest = String::new();
            child.read_to_string(&mut rest).await.unwrap();
            assert_eq!(rest, if allowed { "call" } else { "" });
        }
    }
}
