//! The body of a request that is looked at once more when it is about to be written.
//!
//! A connection may have to be made first, which takes its time. hyper puts the head of a request
//! and the first of its body into one buffer before it writes anything, and gives the connection
//! up when the body fails, so a body that fails at once has not let a byte of the request out.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use toolgate_gateway::channel::LastLook;

/// A body in one piece, with or without a last look at it.
#[derive(Debug)]
pub(super) struct Checked {
    body: Option<Bytes>,
    look: Option<LastLook>,
}

/// It may not be written any more.
#[derive(Debug)]
pub(super) struct NoLongerAllowed;

impl Checked {
    pub(super) fn new(body: Bytes, look: Option<LastLook>) -> Self {
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
        f.write_str("what the request was decided by has changed")
    }
}

impl Error for NoLongerAllowed {}
