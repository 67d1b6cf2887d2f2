//! The agent of a held call: receives progress, can be asked, and can hang up.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;
use toolgate_admission::user_question::UserQuestion;
use toolgate_mcp::{method, write};

use crate::event_buffer::EventBuffer;
use crate::link::{Agent, QUESTION, Requester, ServerRequest, can_fill_forms};

/// The agent's end of a call that may be held.
pub struct HeldAgent {
    buffer: Arc<EventBuffer>,
    /// The progress token as the agent spelled it.
    token: Option<Box<str>>,
    session: Weak<dyn Agent>,
    /// The general stream of its agent session, which ends with the session.
    general: Arc<EventBuffer>,
}

/// Withdraws a question that was not answered.
struct Withdraw {
    session: Weak<dyn Agent>,
    buffer: Arc<EventBuffer>,
    number: u64,
}

impl HeldAgent {
    /// The agent that reads `buffer`; `token` is the raw progress token of its request.
    pub fn new(session: &Arc<impl Agent>, buffer: &Arc<EventBuffer>, token: Option<&str>) -> Self {
        let general = Arc::clone(session.general());
        let session = Arc::downgrade(session);
        Self { buffer: Arc::clone(buffer), token: token.map(Into::into), session, general }
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

    /// Asks the user of the agent with these `params`, if the client declared that it can. A
    /// sessionless client receives the question as `input_required`.
    pub fn ask_user(&self, params: &str) -> Option<UserQuestion> {
        let session = self.session.upgrade()?;
        if !can_fill_forms(&*session) {
            return None;
        }
        let (tell, answer) = oneshot::channel();
        let buffer = Arc::clone(&self.buffer);
        let number = session.ask(ServerRequest {
            link: Weak::new(),
            epoch: u64::MAX,
            requester: Requester::Hold(tell),
            buffer: Arc::clone(&buffer),
            until: Instant::now() + QUESTION,
        })?;
        buffer.push(write::request(number, method::ELICITATION_CREATE, Some(params)));
        let withdraw = Withdraw { session: Weak::clone(&self.session), buffer, number };
        Some(UserQuestion::new(answer, withdraw))
    }

    /// Waits until the agent has hung up, or its agent session has ended.
    pub async fn left(&self) {
        tokio::select! {
            () = self.buffer.left() => {}
            () = self.general.until_ended() => {}
        }
    }
}

impl Drop for Withdraw {
    fn drop(&mut self) {
        let Self { session, buffer, number } = self;
        if session.upgrade().is_some_and(|session| session.drop_server_request(*number)) {
            let params = format!(r#"{{"requestId":{number},"reason":"no longer needed"}}"#);
            buffer.push(write::notification(method::CANCELLED, Some(&params)));
        }
    }
}
