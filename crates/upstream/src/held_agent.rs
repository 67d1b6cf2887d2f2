//! The agent of a held call: receives progress while a person decides, and may leave.

use std::sync::Arc;
use std::time::Duration;

use toolgate_mcp::write;

use crate::event_buffer::EventBuffer;

/// The agent's end of a call that may be held.
#[derive(Debug)]
pub struct HeldAgent {
    buffer: Arc<EventBuffer>,
    /// The progress token as the agent spelled it.
    token: Option<Box<str>>,
}

impl HeldAgent {
    /// The agent that reads `buffer`; `token` is the raw progress token of its request.
    pub fn new(buffer: &Arc<EventBuffer>, token: Option<&str>) -> Self {
        Self { buffer: Arc::clone(buffer), token: token.map(Into::into) }
    }

    /// Sends progress, if the agent asked for it.
    pub fn progress(&self, waited: Duration, total: Duration, approval: &str) {
        let Some(token) = &self.token else { return };
        let (waited, total) = (waited.as_secs(), total.as_secs());
        let text = format!("waiting for a person to answer approval {approval}");
        let text = serde_json::Value::from(text);
        let params = format!(
            r#"{{"progressToken":{token},"progress":{waited},"total":{total},"message":{text}}}"#
        );
        self.buffer.push(write::notification("notifications/progress", Some(&params)));
    }

    /// Waits until the agent has hung up.
    pub async fn left(&self) {
        self.buffer.left().await;
    }
}
