//! Which transport a server speaks: configured, remembered, or detected by its first answer.
//!
//! The rule of the specification: streamable HTTP first; if the POST of `initialize` is answered
//! 400, 404 or 405, a GET that must bring an `endpoint` event. The transport that worked is
//! remembered for the server and tried first by later channels; if it fails, detection starts
//! again.
//!
//! Invariant: only the handshake may be sent over both. A request with a permit is sent once,
//! whatever the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use toolgate_gateway::channel::{Inbox, Outbound, SendError};

use super::legacy::{GUESSING, PATIENT};
use super::{RemoteChannel, not_sent};

/// The configured transport of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpTransport {
    /// To be detected.
    Detect,
    /// Always streamable HTTP.
    Streamable,
    /// Always HTTP+SSE of 2024-11-05.
    Legacy,
}

/// The transport of one server, shared by its channels.
#[derive(Debug)]
pub(super) struct TransportChoice {
    configured: HttpTransport,
    /// HTTP+SSE worked last.
    legacy: AtomicBool,
}

impl TransportChoice {
    pub(super) fn new(configured: HttpTransport) -> Self {
        Self { configured, legacy: AtomicBool::new(false) }
    }
}

impl RemoteChannel {
    /// Opens HTTP+SSE if it is the transport to begin with.
    pub(super) async fn choose(&self) -> Result<(), SendError> {
        match self.transport.configured {
            HttpTransport::Streamable => {}
            HttpTransport::Legacy => self.open_legacy(PATIENT).await.map_err(not_sent)?,
            HttpTransport::Detect => {
                if self.transport.legacy.load(Ordering::Relaxed)
                    && let Err(why) = self.open_legacy(PATIENT).await
                {
                    tracing::debug!(server = self.server, "HTTP+SSE stream not opened: {why}");
                    self.transport.legacy.store(false, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }

    /// Sends a message over the chosen transport; the first message decides it.
    pub(super) async fn carry(
        &self,
        message: Outbound,
        inbox: Arc<dyn Inbox>,
    ) -> Result<(), SendError> {
        if let Some(endpoint) = self.endpoint.get() {
            return self.post_legacy(endpoint, message).await;
        }
        // A sessionless request is never sent over HTTP+SSE, and opens nothing.
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
            tracing::debug!(server = self.server, "HTTP+SSE not supported either: {why}");
            return Err(refused);
        }
        let Some(endpoint) = self.endpoint.get() else { return Err(refused) };
        tracing::info!(server = self.server, "server speaks HTTP+SSE of 2024-11-05");
        self.transport.legacy.store(true, Ordering::Relaxed);
        self.post_legacy(endpoint, message).await
    }
}
