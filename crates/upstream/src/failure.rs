//! Failures: the answer to an agent when a server did not answer.
//!
//! A failed `tools/call` is answered with a tool result (`isError: true`), so that the model can
//! read it and adapt; any other request with a JSON-RPC error with the same `data`.
//!
//! Invariant: every failure states whether the tool may have run ([`Effect`]).

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use toolgate_admission::answer_kind::AnswerKind;
use toolgate_admission::ended::Ended;
use toolgate_audit::{self as audit, CallId};
use toolgate_mcp::{code, write};

use crate::channel::{RefusedStatus, SendError, StatusClass, Uncleared};

#[cfg(test)]
mod tests;

/// Whether the tool may have run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing was sent.
    NotStarted,
    /// It was sent, and its effect is unknown.
    Unknown,
}

/// Why a request had no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The server could not be reached, so nothing was sent.
    Unavailable {
        /// For people: what happened.
        why: String,
        /// When to try again, if known.
        retry_after: Option<Duration>,
    },
    /// The server answered that it does not know the session.
    Forgotten,
    /// The server answered the HTTP request with a status that is not an answer.
    Refused {
        /// The status.
        status: RefusedStatus,
    },
    /// The server did not answer in time.
    Timeout {
        /// The time limit.
        after: Duration,
    },
    /// The connection ended before the answer.
    Lost {
        /// For people: what happened.
        why: String,
    },
}

// === impl Effect ===

impl Effect {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotStarted => "not_started",
            Self::Unknown => "unknown",
        }
    }
}

// === impl Failure ===

impl Failure {
    pub(crate) fn unavailable(why: impl Into<String>) -> Self {
        Self::Unavailable { why: why.into(), retry_after: None }
    }

    /// The same failure for a request that was written, or partly written, before.
    pub(crate) fn of_written(self) -> Self {
        match self {
            Self::Unavailable { why, .. } => Self::Lost { why },
            other => other,
        }
    }

    /// The same failure during a handshake: no request of an agent was sent.
    pub(crate) fn of_handshake(self) -> Self {
        match self {
            Self::Lost { why } => Self::unavailable(why),
            Self::Refused { status } => Self::unavailable(format!("it {}", refused(status))),
            Self::Forgotten => Self::unavailable("it has lost the session of its handshake"),
            Self::Timeout { after } => {
                Self::unavailable(format!("it did not answer the handshake within {after:?}"))
            }
            unavailable @ Self::Unavailable { .. } => unavailable,
        }
    }

    /// Whether the tool may have run.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Unavailable { .. } => Effect::NotStarted,
            Self::Forgotten | Self::Refused { .. } | Self::Timeout { .. } | Self::Lost { .. } => {
                Effect::Unknown
            }
        }
    }

    /// What happened, without the server's name.
    pub(crate) fn cause(&self) -> String {
        match self {
            Self::Unavailable { why, .. } | Self::Lost { why } => why.clone(),
            Self::Forgotten => "it has lost the session".to_owned(),
            Self::Refused { status } => format!("it {}", refused(*status)),
            Self::Timeout { after } => format!("it did not answer within {after:?}"),
        }
    }

    /// The end of a call that failed like this, for the record.
    pub(crate) fn ended(&self) -> Ended {
        let effect = match self.effect() {
            Effect::NotStarted => audit::Effect::NotStarted,
            Effect::Unknown => audit::Effect::Unknown,
        };
        let outcome = match self {
            Self::Timeout { .. } => audit::Outcome::Timeout,
            _ if effect == audit::Effect::NotStarted => audit::Outcome::Unavailable,
            _ => audit::Outcome::Unknown,
        };
        Ended { code: Some(self.error_code()), ..Ended::new(outcome, effect) }
    }

    /// The stable name of this failure.
    pub fn error_code(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } | Self::Forgotten => "upstream_unavailable",
            Self::Timeout { .. } => "upstream_timeout",
            Self::Refused { .. } | Self::Lost { .. } => "outcome_unknown",
        }
    }

    /// What happened, for people.
    pub fn what(&self, server: &str) -> String {
        match self {
            Self::Unavailable { why, .. } => {
                format!("server `{server}` cannot be reached: {why}")
            }
            Self::Forgotten => {
                format!("server `{server}` has lost the session; a new one is being opened")
            }
            Self::Refused { status } => format!("server `{server}` {}", refused(*status)),
            Self::Timeout { after } => {
                format!("server `{server}` did not answer within {after:?}")
            }
            Self::Lost { why } => {
                format!("server `{server}` was lost before it answered: {why}")
            }
        }
    }

    /// The complete text for the agent: what happened, why, and whether to retry.
    pub fn text(&self, server: &str) -> String {
        let what = self.what(server);
        let advice = match (self.effect(), self.retry_after()) {
            _ if matches!(self, Self::Forgotten) => {
                "The request was sent, but servers that have lost a session usually do not execute \
                 it. Repeat the call; if a second effect would do harm, check first."
                    .to_owned()
            }
            (Effect::NotStarted, Some(wait)) => {
                format!("Nothing was sent. Try again in {} s.", whole_seconds(wait))
            }
            (Effect::NotStarted, None) => {
                "Nothing was sent. Trying again is safe, and useful once the server is back."
                    .to_owned()
            }
            (Effect::Unknown, _) => {
                "It may or may not have taken effect: check before you repeat it.".to_owned()
            }
        };
        let stop = if what.ends_with(['?', '.', '!']) { "" } else { "." };
        format!("[UPSTREAM] {what}{stop} {advice}")
    }

    /// The answer to the agent's request `id`; `call` is its id in the audit.
    pub fn answer(
        &self,
        server: &str,
        id: &str,
        expects: AnswerKind,
        call: Option<CallId>,
    ) -> Bytes {
        let text = self.text(server);
        let mut meta = self.meta();
        if let Some(call) = call {
            meta.insert("call_id".into(), call.to_string().into());
        }
        let meta = Value::Object(meta);
        match expects {
            AnswerKind::ToolResult => {
                let result = json!({
                    "content": [{"type": "text", "text": text}],
                    "isError": true,
                    "_meta": meta,
                });
                write::result(id, &result.to_string())
            }
            AnswerKind::Resource | AnswerKind::Tools | AnswerKind::Prompts | AnswerKind::Other => {
                write::error(Some(id), code::INTERNAL_ERROR, &text, Some(&meta.to_string()))
            }
        }
    }

    /// When to try again, if known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unavailable { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    fn meta(&self) -> Map<String, Value> {
        let mut meta = Map::new();
        meta.insert("error_code".into(), self.error_code().into());
        meta.insert("effect".into(), self.effect().as_str().into());
        if let Some(wait) = self.retry_after() {
            meta.insert("retry_after_s".into(), whole_seconds(wait).into());
        }
        meta
    }
}

impl From<Uncleared> for Failure {
    fn from(why: Uncleared) -> Self {
        Self::unavailable(why.to_string())
    }
}

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        match error {
            SendError::NotSent(why) => Self::unavailable(why),
            SendError::NoLongerAllowed => Self::unavailable(error.to_string()),
            SendError::SessionLost => Self::Forgotten,
            SendError::Refused { status, .. } => Self::Refused { status },
            SendError::Lost(why) => Self::Lost { why },
        }
    }
}

fn refused(status: RefusedStatus) -> String {
    let meaning = match status.class {
        StatusClass::Credentials => {
            ", so it does not accept our credentials: see `headers` of this server"
        }
        StatusClass::NoEndpoint => ", so there is no MCP endpoint at its `url`",
        StatusClass::WrongHost => ", so it does not accept the host name in its `url`",
        StatusClass::Redirect => {
            ", a redirect, which toolgate does not follow: put the final address into `url`"
        }
        StatusClass::BadRequest | StatusClass::OtherClientError | StatusClass::ServerError => "",
    };
    format!("answered HTTP {status}{meaning}")
}

fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}
