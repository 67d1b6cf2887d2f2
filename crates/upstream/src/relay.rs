//! Relaying: a large answer is forwarded to its agent while it still arrives.
//!
//! The edge reads an answer piece by piece and forwards each piece when the next one arrives. Only
//! an outline is kept, which is processed like any other message at the end. Only lists are
//! relayed, and only if the agent sees them unchanged (`link/relay.rs`): the effect of a tool must
//! be reported even if its answer is cut off.
//!
//! Invariant: the last piece is released only after the outline was accepted as the answer. Until
//! then the agent has fewer bytes than announced, so it cannot mistake them for a complete answer.
//! Invariant: an answer that is cut off is an error for its reader, never an end.
//!
//! Start at [`begin`].

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use toolgate_mcp::Outline;

/// The reading end of a relayed answer. It holds no more than the answer.
#[derive(Debug)]
pub struct RelayReader {
    pieces: UnboundedReceiver<Bytes>,
    left: usize,
}

/// The writing end of a relayed answer. Dropping it truncates the answer.
#[derive(Debug)]
pub struct RelayWriter {
    pieces: UnboundedSender<Bytes>,
    /// The newest piece.
    held: Bytes,
    outline: Outline,
}

/// The last piece of a relayed answer, until the outline is accepted.
#[derive(Debug)]
pub struct LastPiece {
    pieces: UnboundedSender<Bytes>,
    held: Bytes,
}

/// The rest of the answer will not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server's answer was cut off")]
pub struct Truncated;

/// Starts to relay the answer of `size` bytes that begins like this, under the agent's own id.
pub(crate) fn begin(
    outline: Outline,
    beginning: &Bytes,
    size: usize,
    id: &str,
) -> Option<(RelayWriter, RelayReader)> {
    let place = outline.id();
    let left = size.checked_sub(place.len())?.checked_add(id.len())?;
    let (sender, pieces) = unbounded_channel();
    for piece in [beginning.slice(..place.start), Bytes::copy_from_slice(id.as_bytes())] {
        send(&sender, piece);
    }
    let relay_writer = RelayWriter { pieces: sender, held: beginning.slice(place.end..), outline };
    Some((relay_writer, RelayReader { pieces, left }))
}

// === impl RelayReader ===

impl RelayReader {
    /// How many bytes are missing.
    pub fn left(&self) -> usize {
        self.left
    }

    /// The next piece; `None` after the last.
    pub fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Truncated>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let next = ready!(self.pieces.poll_recv(context)).and_then(|piece| {
            self.left = self.left.checked_sub(piece.len())?;
            Some(piece)
        });
        Poll::Ready(Some(next.ok_or_else(|| {
            tracing::warn!("relayed answer cut off; closing the agent's connection");
            Truncated
        })))
    }
}

// === impl RelayWriter ===

impl RelayWriter {
    /// The next piece has arrived, so the previous one is sent; meanwhile this one is scanned.
    pub fn push(&mut self, piece: Bytes) {
        send(&self.pieces, std::mem::replace(&mut self.held, piece));
        self.outline.push(&self.held);
    }

    /// The answer is complete: its outline, and the last piece to release once the outline is
    /// accepted. `None` if it is not a JSON-RPC message.
    pub fn finish(self) -> Option<(Bytes, LastPiece)> {
        let outline = self.outline.finish()?;
        Some((outline.into(), LastPiece { pieces: self.pieces, held: self.held }))
    }
}

impl LastPiece {
    /// Releases the last piece: the outline was accepted.
    pub fn release(self) {
        send(&self.pieces, self.held);
    }
}

fn send(pieces: &UnboundedSender<Bytes>, piece: Bytes) {
    if !piece.is_empty() && pieces.send(piece).is_err() {
        // The agent has disconnected. Its request continues to its end.
        tracing::trace!("relayed answer has no reader");
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    const ANSWER: [&str; 3] = [r#"{"jsonrpc":"2.0","id":17,"result":{"tools":["#, "1,2", "]}} "];
    fn passing(size: usize) -> (RelayWriter, RelayReader) {
        let beginning = Bytes::from_static(ANSWER[0].as_bytes());
        let outline = Outline::begin(&beginning).unwrap();
        let (mut relay_writer, relay_reader) =
            begin(outline, &beginning, size, r#""mine""#).unwrap();
        relay_writer.push(Bytes::from_static(ANSWER[1].as_bytes()));
        relay_writer.push(Bytes::from_static(ANSWER[2].as_bytes()));
        (relay_writer, relay_reader)
    }

    /// The bytes that an agent receives, and whether they were cut off.
    async fn read(mut relay_reader: RelayReader) -> (String, bool) {
        let mut all = Vec::new();
        while let Some(next) = poll_fn(|context| relay_reader.poll_next(context)).await {
            match next {
                Ok(piece) => all.extend_from_slice(&piece),
                Err(Truncated) => return (String::from_utf8(all).unwrap(), true),
            }
        }
        (String::from_utf8(all).unwrap(), false)
    }

    fn size() -> usize {
        ANSWER.iter().map(|piece| piece.len()).sum()
    }

    #[tokio::test]
    async fn the_last_piece_waits_until_the_answer_was_received() {
        let whole = ANSWER.concat().replace("17", r#""mine""#);
        let (relay_writer, relay_reader) = passing(size());
        let (outline, held) = relay_writer.finish().unwrap();
        assert_eq!(outline, r#"{"jsonrpc":"2.0","id":17,"result":{}} "#);
        held.release();
        assert_eq!(read(relay_reader).await, (whole.clone(), false));

        let unread = (whole.strip_suffix(ANSWER[2]).unwrap().to_owned(), true);
        let (relay_writer, relay_reader) = passing(size());
        drop(relay_writer.finish());
        assert_eq!(read(relay_reader).await, unread);
        let (relay_writer, relay_reader) = passing(size());
        drop(relay_writer);
        assert_eq!(read(relay_reader).await, unread);
    }

    #[tokio::test]
    async fn what_is_longer_or_shorter_than_announced_is_no_answer() {
        for size in [size() - 1, size() + 1] {
            let (relay_writer, relay_reader) = passing(size);
            relay_writer.finish().unwrap().1.release();
            assert!(read(relay_reader).await.1, "{size}");
        }
    }
}
