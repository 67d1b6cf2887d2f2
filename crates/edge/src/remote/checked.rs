//! The body of a request that is checked again when it is about to be written.
//!
//! Connecting first may take time. hyper puts the head of a request and the beginning of its body
//! into one buffer before it writes anything, and closes the connection if the body fails. So if
//! the body fails at once, no byte of the request was sent.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use toolgate_gateway::channel::FinalCheck;

/// A body in one piece, with an optional last look.
#[derive(Debug)]
pub(super) struct Checked {
    body: Option<Bytes>,
    look: Option<FinalCheck>,
}

/// It may no longer be written.
#[derive(Debug)]
pub(super) struct NoLongerAllowed;

impl Checked {
    pub(super) fn new(body: Bytes, look: Option<FinalCheck>) -> Self {
        Self { body: Some(body).filter(|body| !body.is_empty()), look }
    }
}

impl Body for Checked {
    type Data = Bytes;
    type Error = NoLongerAllowed;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, NoLongerAllowed>>> {
        if self.look.as_ref().is_some_and(|look| !look.allows()) {
            return Poll::Ready(Some(Err(NoLongerAllowed)));
        }
        self.look = None;
        Poll::Ready(self.body.take().map(|body| Ok(Frame::data(body))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.body.as_ref().map_or(0, |body| body.len() as u64))
    }
}

impl fmt::Display for NoLongerAllowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request is no longer allowed")
    }
}

impl Error for NoLongerAllowed {}
