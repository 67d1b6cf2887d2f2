//! A response body of up to three pieces, so that a large result is sent without copying.
//!
//! Invariant: the exact length is known, so hyper sends `Content-Length` and never chunks.

use std::array;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// The remaining pieces.
#[derive(Debug)]
pub(super) struct Parts {
    pieces: array::IntoIter<Bytes, 3>,
    remaining: u64,
}

impl Parts {
    /// No body.
    pub(super) fn empty() -> Self {
        Self::one(Bytes::new())
    }

    /// A body in one piece.
    pub(super) fn one(piece: Bytes) -> Self {
        Self::three([piece, Bytes::new(), Bytes::new()])
    }

    /// A body of pieces that are sent one after the other; empty ones are left out.
    pub(super) fn three(pieces: [Bytes; 3]) -> Self {
        let remaining = pieces.iter().map(|piece| piece.len() as u64).sum();
        Self { pieces: pieces.into_iter(), remaining }
    }
}

impl Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.find(|piece| !piece.is_empty());
        if let Some(piece) = &piece {
            self.remaining = self.remaining.saturating_sub(piece.len() as u64);
        }
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.remaining == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}
