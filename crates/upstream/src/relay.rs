//! Passages: a large answer that goes on to its agent while it still comes in.
//!
//! The edge reads an answer piece by piece, and each piece is handed on as soon as the next is
//! here. What is kept is an outline, which is heard like any other message at the end. Only lists
//! go this way, and only where an agent sees them as they are (`link/relay.rs`): what a tool has
//! done must be said also if its answer breaks off.
//!
//! Invariant: the last piece is let go only when the outline was heard and found to be the answer.
//! Until then an agent has less than was announced to it, and nothing that it could take for one.
//! Invariant: what breaks off is an error to whoever reads it, never an end.
//!
//! Start at [`begin`].

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use toolgate_mcp::Outline;

/// An answer on its way to an agent. It holds no more than the answer.
#[derive(Debug)]
pub struct RelayReader {
    pieces: UnboundedReceiver<Bytes>,
    left: usize,
}

/// Where the pieces of an answer go. Dropping it breaks the answer off.
#[derive(Debug)]
pub struct RelayWriter {
    pieces: UnboundedSender<Bytes>,
    /// The newest piece.
    held: Bytes,
    outline: Outline,
}

/// What is left to do of an answer that is here: to be heard.
#[derive(Debug)]
pub struct LastPiece {
    pieces: UnboundedSender<Bytes>,
    held: Bytes,
}

/// The rest of an answer will never come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server's answer broke off")]
pub struct Truncated;

/// The answer of `size` bytes that begins like this, under the agent's own id.
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
    /// How many bytes are still to come.
    pub fn left(&self) -> usize {
        self.left
    }

    /// The next piece; none behind the last.
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
            tracing::warn!(
                "a large answer broke off on its way to an agent, whose connection is ended"
            );
            Truncated
        })))
    }
}

// === impl RelayWriter ===

impl RelayWriter {
    /// The next piece has come, so that the one before it may go; while that is sent, this one is
    /// looked through.
    pub fn push(&mut self, piece: Bytes) {
        send(&self.pieces, std::mem::replace(&mut self.held, piece));
        self.outline.push(&self.held);
    }

    /// All of it has come: what is to be heard, and what may go when that was the answer. None if
    /// what has come is no message.
    pub fn finish(self) -> Option<(Bytes, LastPiece)> {
        let outline = self.outline.finish()?;
        Some((outline.into(), LastPiece { pieces: self.pieces, held: self.held }))
    }
}

impl LastPiece {
    /// It was the answer.
    pub fn release(self) {
        send(&self.pieces, self.held);
    }
}

fn send(pieces: &UnboundedSender<Bytes>, piece: Bytes) {
    if !piece.is_empty() && pieces.send(piece).is_err() {
        // The agent has hung up. Its request runs to its end all the same.
        tracing::trace!("nobody reads this answer any more");
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

    /// What an agent sees of it, and whether it broke off.
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
    async fn the_last_piece_waits_until_the_answer_was_heard() {
        let whole = ANSWER.concat().replace("17", r#""mine""#);
        let (relay_writer, relay_reader) = passing(size());
        let (outline, held) = relay_writer.finish().unwrap();
        assert_eq!(outline, r#"{"jsonrpc":"2.0","id":17,"result":{}} "#);
        held.release();
        assert_eq!(read(relay_reader).await, (whole.clone(), false));

        let unheard = (whole.strip_suffix(ANSWER[2]).unwrap().to_owned(), true);
        let (relay_writer, relay_reader) = passing(size());
        drop(relay_writer.finish());
        assert_eq!(read(relay_reader).await, unheard);
        let (relay_writer, relay_reader) = passing(size());
        drop(relay_writer);
        assert_eq!(read(relay_reader).await, unheard);
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
