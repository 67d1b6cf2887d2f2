//! Closing a connection whose client is still sending.
//!
//! A request may be answered before it is read completely: it is too large, or not allowed. Many
//! clients send everything before they read, and closing a connection with unread bytes discards
//! the answer. So further input is discarded for a while, and the client receives its answer.
//!
//! A client that has sent only the head may still be about to send, so a silent one is waited for
//! too; one that has received its answer closes its side at once.
//!
//! Invariant: the discarded input is bounded in size and time and never kept, and on shutdown a
//! silent connection is closed at once.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};
use tokio_util::sync::CancellationToken;

/// How long input is discarded.
const PATIENCE: Duration = Duration::from_secs(5);
/// How much input is discarded.
const MOST: usize = 64 * 1024 * 1024;

/// A connection that is closed like this.
pub(crate) struct Lingering<S> {
    stream: S,
    stop: CancellationToken,
    end: Option<Box<End>>,
}

/// The end of a connection: nothing is written any more.
struct End {
    patience: Pin<Box<Sleep>>,
    thrown_away: usize,
    buffer: [u8; 16 * 1024],
}

impl<S> Lingering<S> {
    /// After `stop`, silent clients are not waited for.
    pub(crate) fn new(stream: S, stop: CancellationToken) -> Self {
        Self { stream, stop, end: None }
    }

    pub(crate) fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: AsyncRead + Unpin> Lingering<S> {
    /// Ready when the input has ended or the limit is reached.
    fn poll_throw_away(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(end) = &mut self.end else { return Poll::Ready(()) };
        while end.thrown_away < MOST {
            let mut buffer = ReadBuf::new(&mut end.buffer);
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    end.thrown_away += buffer.filled().len();
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending if end.thrown_away == 0 && self.stop.is_cancelled() => {
                    return Poll::Ready(());
                }
                Poll::Pending => return end.patience.as_mut().poll(context),
            }
        }
        Poll::Ready(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Lingering<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lingering<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.end.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
            let patience = Box::pin(sleep(PATIENCE));
            let buffer = [0; 16 * 1024];
            this.end = Some(Box::new(End { patience, thrown_away: 0, buffer }));
        }
        this.poll_throw_away(context).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_still_sending_receives_the_answer() {
        // What was sent before the answer: some of it, or nothing but the head.
        for later in [Duration::ZERO, Duration::from_secs(1)] {
            let (ours, mut theirs) = duplex(1024);
            let mut ours = Lingering::new(ours, CancellationToken::new());
            let client = tokio::spawn(async move {
                theirs.write_all(&[7; 10]).await.unwrap();
                sleep(later).await;
                theirs.write_all(&vec![7; 1024 * 1024]).await.unwrap();
                let mut answer = String::new();
                theirs.read_to_string(&mut answer).await.unwrap();
                answer
            });
            ours.read_exact(&mut [0; 10]).await.unwrap();
            ours.write_all(b"too large").await.unwrap();
            ours.shutdown().await.unwrap();
            drop(ours);
            assert_eq!(client.await.unwrap(), "too large");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_client_is_not_waited_for_and_a_silent_one_not_for_long() {
        // How much was sent, whether the client has closed, whether toolgate stops.
        let cases = [
            (0, true, false, Duration::ZERO),
            (100, true, false, Duration::ZERO),
            (0, false, true, Duration::ZERO),
            (100, false, true, PATIENCE),
            (0, false, false, PATIENCE),
        ];
        for (sent, closed, stops, waited) in cases {
            let (ours, mut theirs) = duplex(1024);
            let stop = CancellationToken::new();
            if stops {
                stop.cancel();
            }
            let mut ours = Lingering::new(ours, stop);
            theirs.write_all(&vec![7; sent]).await.unwrap();
            let theirs = (!closed).then_some(theirs);
            let began = tokio::time::Instant::now();
            ours.shutdown().await.unwrap();
            let within = began.elapsed() >= waited && began.elapsed() <= waited * 2;
            assert!(within, "{sent} {closed} {stops}");
            drop(theirs);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn discarded_input_is_bounded() {
        let (ours, mut theirs) = duplex(1024 * 1024);
        let mut ours = Lingering::new(ours, CancellationToken::new());
        let client = tokio::spawn(async move {
            let mut sent = 0;
            while theirs.write_all(&vec![7; 64 * 1024]).await.is_ok() {
                sent += 64 * 1024;
            }
            sent
        });
        ours.shutdown().await.unwrap();
        drop(ours);
        assert!(client.await.unwrap() <= MOST + 3 * 1024 * 1024);
    }
}
