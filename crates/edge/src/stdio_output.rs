//! What waits until a client reads it from standard output.
//!
//! Invariant: one message is one line, written whole.
//! Invariant: what waits is bounded. Above [`ENOUGH`] senders that can wait do so, and no further
//! message of the client is read; above [`MOST`] the client is given up.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolgate_mcp::write;

/// So many bytes may wait before others wait as well.
const ENOUGH: usize = 4 * 1024 * 1024;
/// So many bytes may wait at most. One message may have 64 MiB.
const MOST: usize = 256 * 1024 * 1024;
/// Progress is seen after so many bytes.
const PART: usize = 64 * 1024;
/// How long a client that must end may take to read a part.
const PATIENCE: Duration = Duration::from_secs(2);

/// The way to the client. Clones lead to the same one.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    queue: mpsc::UnboundedSender<Bytes>,
    state: watch::Sender<State>,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// The bytes that wait.
    unread: usize,
    /// The parts that were written so far.
    written: u64,
}

/// The task that writes.
#[derive(Debug)]
pub(crate) struct Writer {
    task: JoinHandle<()>,
    state: watch::Receiver<State>,
}

/// Writes to a client from now on.
pub(crate) fn write_to(output: impl AsyncWrite + Unpin + Send + 'static) -> (Output, Writer) {
    let (queue, waiting) = mpsc::unbounded_channel();
    let state = watch::Sender::default();
    let task = tokio::spawn(write_lines(waiting, output, state.clone()));
    let writer = Writer { task, state: state.subscribe() };
    (Output { queue, state }, writer)
}

impl Output {
    /// Queues a message.
    pub(crate) fn push(&self, message: Bytes) {
        self.state.send_modify(|state| state.unread += message.len());
        // A client that no longer reads ends the bridge.
        drop(self.queue.send(message));
    }

    /// Queues a message when there is room for it.
    pub(crate) async fn send(&self, message: Bytes) {
        self.room().await;
        self.push(message);
    }

    /// Resolves when little waits.
    pub(crate) async fn room(&self) {
        let mut state = self.state.subscribe();
        tokio::select! {
            // `self` holds a sender, so this never fails.
            _ = state.wait_for(|state| state.unread <= ENOUGH) => {}
            () = self.queue.closed() => {}
        }
    }

    /// Resolves when the client has closed the output, or far too much waits for it.
    pub(crate) async fn is_over(&self) {
        let mut state = self.state.subscribe();
        tokio::select! {
            _ = state.wait_for(|state| state.unread > MOST) => {
                let limit = MOST >> 20;
                tracing::error!("the client has left more than {limit} MiB unread; disconnecting it");
            }
            () = self.queue.closed() => tracing::info!("the client has closed the output"),
        }
    }

    /// Resolves when something waits and the client has read none of it for a while.
    pub(crate) async fn is_stuck(&self) {
        stuck(self.state.subscribe()).await;
    }
}

impl Writer {
    /// Waits until everything is written, as long as the client reads.
    pub(crate) async fn finish(mut self) {
        let mut state = self.state.clone();
        tokio::select! {
            written = &mut self.task => {
                if written.is_err() {
                    tracing::error!("panic while writing to the client (please report this)");
                }
            }
            _ = state.wait_for(|state| state.unread == 0) => {}
            () = stuck(self.state) => {
                tracing::warn!("the client has not read all of the output");
                self.task.abort();
            }
        }
    }
}

/// Resolves when the bridge must stop, and the client has read nothing for a while.
pub(crate) async fn stopped_and_stuck(output: &Output, stop: &CancellationToken) {
    stop.cancelled().await;
    output.is_stuck().await;
}

async fn stuck(mut state: watch::Receiver<State>) {
    loop {
        let Ok(before) = state.wait_for(|state| state.unread > 0).await.map(|state| state.written)
        else {
            // The writer has ended.
            return std::future::pending().await;
        };
        let moved = state.wait_for(|state| state.written != before || state.unread == 0);
        if timeout(PATIENCE, moved).await.is_err() {
            return;
        }
    }
}

async fn write_lines(
    mut waiting: mpsc::UnboundedReceiver<Bytes>,
    mut output: impl AsyncWrite + Unpin,
    state: watch::Sender<State>,
) {
    while let Some(message) = waiting.recv().await {
        let length = message.len();
        if let Err(error) = write_line(&mut output, message, &state).await {
            tracing::debug!(%error, "the client does not read");
            return;
        }
        state.send_modify(|state| {
            state.unread = state.unread.saturating_sub(length);
            state.written += 1;
        });
    }
}

async fn write_line(
    output: &mut (impl AsyncWrite + Unpin),
    message: Bytes,
    state: &watch::Sender<State>,
) -> std::io::Result<()> {
    let mut line = Vec::with_capacity(message.len() + 1);
    line.extend_from_slice(&write::compact_bytes(message));
    line.push(b'\n');
    for part in line.chunks(PART) {
        output.write_all(part).await?;
        state.send_modify(|state| state.written += 1);
    }
    output.flush().await
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt as _, BufReader, duplex};

    use super::*;

    fn message(length: usize) -> Bytes {
        Bytes::from(vec![b'1'; length])
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_noticed() {
        let (here, _there) = duplex(1024);
        let (output, writer) = write_to(here);
        output.send(message(ENOUGH + 1)).await;
        let more = output.send(message(1));
        assert!(timeout(Duration::from_mins(1), more).await.is_err(), "it waits for room");
        output.is_stuck().await;
        output.push(message(MOST));
        output.is_over().await;
        drop(output);
        writer.finish().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_client_gets_everything() {
        let (here, there) = duplex(1024);
        let (output, writer) = write_to(here);
        for _ in 0..3 {
            output.push(message(PART * 3));
        }
        drop(output);
        let reading = tokio::spawn(async move {
            let (mut lines, mut lengths) = (BufReader::with_capacity(100, there).lines(), vec![]);
            while let Some(line) = lines.next_line().await.unwrap() {
                lengths.push(line.len());
                tokio::time::sleep(PATIENCE / 2).await;
            }
            lengths
        });
        writer.finish().await;
        assert_eq!(reading.await.unwrap(), [PART * 3; 3]);
    }
}
