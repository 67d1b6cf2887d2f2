//! A request of protocol 2026-07-28 while it runs, and the stream of what comes of it.

use std::sync::Arc;

use bytes::Bytes;

use super::listen::Subscription;
use super::shape::Shape;
use crate::agent::{AgentSession, Attached};
use crate::call::Call;
use crate::outlet::{First, Next};

/// A request on its way. Dropping it cancels it, unless it was answered.
pub struct ModernCall {
    call: Call,
    shape: Shape,
    interest: Interest,
}

/// What comes of a request, message by message. Dropping it cancels the request, unless it was
/// answered.
pub struct ModernStream {
    attached: Attached,
    shape: Shape,
    interest: Interest,
}

/// Somebody waits for something; dropped before it came, the server is told.
pub(super) struct Interest {
    session: Arc<AgentSession>,
    what: Option<What>,
}

enum What {
    /// The answer to the request of that id.
    Answer(String),
    /// Whatever there is to tell.
    Changes(Arc<Subscription>),
    /// An answer of ours.
    Ours,
}

// === impl ModernCall ===

impl ModernCall {
    pub(super) fn new(call: Call, shape: Shape, interest: Interest) -> Self {
        Self { call, shape, interest }
    }

    /// Waits for the answer, but only a while: then, or when something else comes first, it is to
    /// be read as a stream.
    pub async fn first(&mut self) -> First {
        match self.call.first().await {
            First::Answer(body, status) => {
                self.interest.satisfied();
                let body = body.into_bytes();
                match self.shape.show(&body) {
                    Some((shown, better)) => First::Answer(shown.into(), better.unwrap_or(status)),
                    None => First::Answer(body.into(), status),
                }
            }
            First::Stream => First::Stream,
        }
    }

    /// Reads it as a stream.
    pub fn stream(self) -> ModernStream {
        let Self { call, shape, interest } = self;
        let attached = interest.session.follow(&call);
        ModernStream { attached, shape, interest }
    }
}

// === impl ModernStream ===

impl ModernStream {
    /// The next message; none if there are no more.
    pub async fn next(&mut self) -> Option<Bytes> {
        loop {
            match self.attached.reader.next().await {
                Next::Event(_, body) => {
                    if let Some((shown, _)) = self.shape.show(&body) {
                        return Some(shown);
                    }
                }
                // Nobody can come back in this protocol, so we stay for as long as it takes.
                Next::Pause(_) => {}
                Next::Gap => {
                    tracing::warn!("an agent reads its stream too slowly and is disconnected");
                    return None;
                }
                Next::End => {
                    self.interest.satisfied();
                    return None;
                }
            }
        }
    }
}

// === impl Interest ===

impl Interest {
    pub(super) fn answer(session: &Arc<AgentSession>, id: String) -> Self {
        Self { session: Arc::clone(session), what: Some(What::Answer(id)) }
    }

    pub(super) fn changes(session: &Arc<AgentSession>, subscription: Arc<Subscription>) -> Self {
        Self { session: Arc::clone(session), what: Some(What::Changes(subscription)) }
    }

    pub(super) fn ours(session: &Arc<AgentSession>) -> Self {
        Self { session: Arc::clone(session), what: Some(What::Ours) }
    }

    fn satisfied(&mut self) {
        if let Some(What::Answer(_)) = self.what {
            self.what = None;
        }
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        match self.what.take() {
            Some(What::Answer(id)) => self.session.abandon(id),
            Some(What::Changes(subscription)) => subscription.end(&self.session),
            Some(What::Ours) | None => {}
        }
    }
}
