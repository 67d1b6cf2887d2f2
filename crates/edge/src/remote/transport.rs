//! TransportChoice transport a server speaks: told, remembered, or found out by its first answer.
//!
//! The specification's rule: streamable HTTP first, and if the POST of `initialize` is answered
//! 400, 404 or 405, a GET that must bring an `endpoint` event. What worked is remembered for the
//! server, so that later channels begin with it; if it does not work any more, both are tried anew.
//!
//! Invariant: only the handshake may be sent over both. What was admitted under a permit is sent
//! once, whatever the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use toolgate_gateway::channel::{Inbox, Outbound, SendError};

use super::legacy::{GUESSING, PATIENT};
use super::{RemoteChannel, not_sent};

/// TransportChoice transport a server speaks, as far as people have said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpTransport {
    /// To be found out.
    Detect,
    /// Streamable HTTP, whatever happens.
    Streamable,
    /// HTTP+SSE of 2024-11-05, whatever happens.
    Legacy,
}

/// What all channels to one server know of its transport.
#[derive(Debug)]
pub(super) struct TransportChoice {
    configured: HttpTransport,
    /// The legacy transport worked last.
    legacy: AtomicBool,
}

impl TransportChoice {
    pub(super) fn new(configured: HttpTransport) -> Self {
        Self { configured, legacy: AtomicBool::new(false) }
    }
}

impl RemoteChannel {
    /// Opens the legacy transport if that is the one to begin with.
    pub(super) async fn choose(&self) -> Result<(), SendError> {
        match self.transport.configured {
            HttpTransport::Streamable => {}
            HttpTransport::Legacy => self.open_legacy(PATIENT).await.map_err(not_sent)?,
            HttpTransport::Detect => {
                if self.transport.legacy.load(Ordering::Relaxed)
                    && let Err(why) = self.open_legacy(PATIENT).await
                {
                    tracing::debug!(server = self.server, "no legacy stream any more: {why}");
                    self.transport.legacy.store(false, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }

    /// Sends a message over the transport that was chosen, and chooses by the first one.
    pub(super) async fn carry(
        &self,
        message: Outbound,
        inbox: Arc<dyn Inbox>,
    ) -> Result<(), SendError> {
        if let Some(endpoint) = self.endpoint.get() {
            return self.post_legacy(endpoint, message).await;
        }
        // Who speaks protocol 2026-07-28 has asked for nothing else, and opens nothing.
        if !message.heads().is_empty() {
            return self.exchange(message, inbox).await;
        }
        let first = self.opening.swap(false, Ordering::Relaxed);
        let undecided = first && self.transport.configured == HttpTransport::Detect;
        let again = message.again().filter(|_| undecided);
        let (refused, message) = match (self.exchange(message, inbox).await, again) {
            (Err(refused @ SendError::Refused { status, .. }), Some(again))
                if matches!(status.number, 400 | 404 | 405) =>
            {
                (refused, again)
            }
            (sent, _) => return sent,
        };
        if let Err(why) = self.open_legacy(GUESSING).await {
            tracing::debug!(server = self.server, "it does not speak HTTP+SSE either: {why}");
            return Err(refused);
        }
        let Some(endpoint) = self.endpoint.get() else { return Err(refused) };
        tracing::info!(server = self.server, "`{}` speaks HTTP+SSE of 2024-11-05", self.server);
        self.transport.legacy.store(true, Ordering::Relaxed);
        self.post_legacy(endpoint, message).await
    }
}
