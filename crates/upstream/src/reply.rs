//! The reply: the one answer that a request is owed.
//!
//! Invariant: a request is answered once. A reply that is dropped before it was given, because of a
//! panic, say, answers with an error.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate_admission::answer_kind::AnswerKind;
use toolgate_admission::refused::Refused;
use toolgate_audit::CallId;
use toolgate_mcp::{Pieces, code, write};

use crate::event_buffer::{EventBuffer, Rejection};

/// The answer that a request is owed.
#[derive(Debug)]
pub struct Reply {
    buffer: Arc<EventBuffer>,
    id: Box<str>,
    expects: AnswerKind,
    call_id: Option<CallId>,
    is_owed: bool,
}

impl Reply {
    /// What the request `id` is owed; it goes to `buffer`.
    pub fn new(buffer: &Arc<EventBuffer>, id: &str, expects: AnswerKind) -> Self {
        Self { buffer: Arc::clone(buffer), id: id.into(), expects, call_id: None, is_owed: true }
    }

    /// The audit has the request under this id.
    #[must_use]
    pub fn with_call_id(mut self, call_id: Option<CallId>) -> Self {
        self.call_id = call_id;
        self
    }

    /// The id of the request, as the agent spelled it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Where the answer goes.
    pub fn buffer(&self) -> &Arc<EventBuffer> {
        &self.buffer
    }

    /// What kind of answer is expected.
    pub(crate) fn expects(&self) -> AnswerKind {
        self.expects
    }

    /// Under what the audit has the request, if it does.
    pub(crate) fn call_id(&self) -> Option<CallId> {
        self.call_id
    }

    /// Answers with this message.
    pub fn answer(self, body: impl Into<Pieces>) {
        self.answer_with(body, None);
    }

    /// Answers with a message that may reject the request itself.
    pub fn answer_with(mut self, body: impl Into<Pieces>, rejection: Option<Rejection>) {
        self.is_owed = false;
        self.buffer.answer(body, rejection);
    }

    /// Answers with this raw result.
    pub fn result(self, result: &str) {
        let body = write::result(&self.id, result);
        self.answer(body);
    }

    /// Answers that the request was refused.
    pub fn refuse(self, refused: &Refused) {
        let body = refused.answer(&self.id, self.expects);
        self.answer(body);
    }

    /// The agent wants no answer any more.
    pub fn skip_answer(mut self) {
        self.is_owed = false;
        self.buffer.skip_answer();
    }

    fn error(&self) -> bytes::Bytes {
        let mut data = Map::new();
        data.insert("error_code".into(), "internal_error".into());
        data.insert("effect".into(), "unknown".into());
        if let Some(call_id) = self.call_id {
            data.insert("call_id".into(), call_id.to_string().into());
        }
        let data = Value::Object(data).to_string();
        write::error(Some(&self.id), code::INTERNAL_ERROR, INTERNAL, Some(&data))
    }
}

const INTERNAL: &str = "toolgate failed while it handled this request; whether it took effect is \
                        unknown. Check before you repeat it; the operator finds the cause in the log";

impl Drop for Reply {
    fn drop(&mut self) {
        if self.is_owed {
            self.buffer.answer(self.error(), None);
        }
    }
}
