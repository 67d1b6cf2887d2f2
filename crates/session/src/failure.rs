//! Why a call to a session tool failed, as a tool result that a model can read.
//!
//! Invariant: a failure names only sessions that the caller's grant may reach; its creator has
//! filtered them.
//! Invariant: every failure states whether the tool may have run, and no text contains an argument
//! value.

mod missing;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

pub use self::missing::MissingSession;

/// Whether the tool may have run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing was sent.
    NotStarted,
    /// It was sent, and its outcome is unknown.
    Unknown,
}

/// A session as listed in errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its id.
    pub session_id: Arc<str>,
    /// Its infobase.
    pub infobase_name: String,
    /// Its kind.
    pub kind: String,
}

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionFailure {
    /// No such tool for this grant.
    UnknownTool {
        /// The name that was called.
        tool: String,
    },
    /// The tool is known, but no connected session serves it.
    NoLiveSession(Box<MissingSession>),
    /// Several sessions serve the tool, and the call does not select one.
    SessionIdRequired {
        /// The name that was called.
        tool: String,
        /// The sessions that serve it.
        candidates: Vec<Candidate>,
    },
    /// The selector matches no session.
    UnknownSession {
        /// The sessions that serve the tool.
        candidates: Vec<Candidate>,
    },
    /// The session is disconnected.
    SessionGone {
        /// The session.
        session_id: Arc<str>,
        /// Whether the tool may have run.
        effect: Effect,
    },
    /// The session does not publish the tool.
    SessionMismatch {
        /// The session.
        session_id: Arc<str>,
        /// The tool.
        tool: String,
    },
    /// The session has changed the tool's definition since the call was decided.
    ToolChanged {
        /// The session.
        session_id: Arc<str>,
        /// The tool.
        tool: String,
    },
    /// The queue of the session is full.
    SessionBusy {
        /// The session.
        session_id: Arc<str>,
        /// The number of waiting calls.
        waiting: usize,
        /// Seconds after which a retry makes sense.
        retry_after_s: u64,
    },
    /// The arguments are invalid.
    InvalidArguments {
        /// The problem and its location.
        what: String,
    },
    /// The deadline has passed.
    Timeout {
        /// The session.
        session_id: Arc<str>,
        /// The time limit of the call.
        after: Duration,
        /// Not started if it was still queued.
        effect: Effect,
        /// Whether calls to this session time out repeatedly.
        unresponsive: bool,
    },
    /// The caller cancelled the call.
    Cancelled {
        /// Not started if it was still queued.
        effect: Effect,
    },
}

/// The maximum number of sessions listed in an error; it states how many more there are.
const NAMED: usize = 50;

impl Effect {
    /// The name used on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotStarted => "not_started",
            Self::Unknown => "unknown",
        }
    }
}

impl SessionFailure {
    /// The stable name of this failure.
    pub fn error_code(&self) -> &'static str {
        match self {
            Self::UnknownTool { .. } => "unknown_tool",
            Self::NoLiveSession(_) => "no_live_session",
            Self::SessionIdRequired { .. } => "session_id_required",
            Self::UnknownSession { .. } => "unknown_session",
            Self::SessionGone { .. } => "session_gone",
            Self::SessionMismatch { .. } | Self::ToolChanged { .. } => "session_mismatch",
            Self::SessionBusy { .. } => "session_busy",
            Self::InvalidArguments { .. } => "invalid_arguments",
            Self::Timeout { .. } => "upstream_timeout",
            Self::Cancelled { .. } => "cancelled",
        }
    }

    /// Whether the tool may have run.
    pub fn effect(&self) -> Effect {
        match self {
            Self::SessionGone { effect, .. }
            | Self::Timeout { effect, .. }
            | Self::Cancelled { effect } => *effect,
            _ => Effect::NotStarted,
        }
    }

    /// What happened, why, and whether to retry.
    pub fn text(&self) -> String {
        match self {
            Self::UnknownTool { tool } => format!("There is no tool `{tool}`. See tools/list."),
            Self::NoLiveSession(missing) => missing.text(),
            Self::SessionIdRequired { tool, candidates } => format!(
                "Several sessions serve `{tool}`: select one with `session_id`. {}. Nothing was sent.",
                choices(candidates)
            ),
            Self::UnknownSession { candidates } => {
                format!("No such session. {}. Nothing was sent.", choices(candidates))
            }
            Self::SessionGone { session_id, effect } => match effect {
                Effect::NotStarted => format!(
                    "Session `{session_id}` is not connected. Nothing was sent. Try again once it is back (see session_list)."
                ),
                Effect::Unknown => format!(
                    "Session `{session_id}` was lost before it answered. The call may or may not have taken effect: check before you repeat it."
                ),
            },
            Self::SessionMismatch { session_id, tool } => format!(
                "Session `{session_id}` does not publish `{tool}`. Nothing was sent. Choose another session."
            ),
            Self::ToolChanged { session_id, tool } => format!(
                "Session `{session_id}` has changed the definition of `{tool}` while the call waited. Nothing was sent. List the tools again before you repeat it."
            ),
            Self::SessionBusy { session_id, waiting, retry_after_s } => format!(
                "Session `{session_id}` is busy: {waiting} calls are already waiting. Nothing was sent. Try again in {retry_after_s} s."
            ),
            Self::InvalidArguments { what } => {
                format!("[INVALID ARGUMENTS] {what}. Nothing was sent. Correct it and call again.")
            }
            Self::Timeout { session_id, after, effect, unresponsive } => {
                timeout(session_id, *after, *effect, *unresponsive)
            }
            Self::Cancelled { effect: Effect::NotStarted } => {
                "Cancelled before it was sent.".to_owned()
            }
            Self::Cancelled { effect: Effect::Unknown } => {
                "Cancelled while it ran; it may or may not have taken effect.".to_owned()
            }
        }
    }

    /// The `_meta` object.
    pub fn meta(&self) -> Map<String, Value> {
        let mut meta = Map::new();
        meta.insert("error_code".into(), self.error_code().into());
        meta.insert("effect".into(), self.effect().as_str().into());
        match self {
            Self::UnknownTool { tool } => {
                meta.insert("tool".into(), tool.as_str().into());
            }
            Self::NoLiveSession(missing) => missing.add_to(&mut meta),
            Self::SessionIdRequired { candidates, .. } | Self::UnknownSession { candidates } => {
                let shown: Vec<Value> =
                    candidates.iter().take(NAMED).map(Candidate::json).collect();
                meta.insert("candidates".into(), shown.into());
                if candidates.len() > NAMED {
                    meta.insert("more_candidates".into(), (candidates.len() - NAMED).into());
                }
            }
            Self::SessionGone { session_id, .. }
            | Self::SessionMismatch { session_id, .. }
            | Self::ToolChanged { session_id, .. }
            | Self::Timeout { session_id, .. } => {
                meta.insert("session_id".into(), (**session_id).into());
            }
            Self::SessionBusy { session_id, retry_after_s, .. } => {
                meta.insert("session_id".into(), (**session_id).into());
                meta.insert("retry_after_s".into(), (*retry_after_s).into());
            }
            Self::InvalidArguments { .. } | Self::Cancelled { .. } => {}
        }
        meta
    }

    /// The tool result. Clients that hide `_meta` find the code in `structuredContent`, unless an
    /// output schema forbids it.
    pub fn result(&self, has_output_schema: bool) -> Value {
        let mut result = json!({
            "content": [{"type": "text", "text": self.text()}],
            "isError": true,
            "_meta": self.meta(),
        });
        if !has_output_schema && let Some(result) = result.as_object_mut() {
            let code = json!({"_meta": {"error_code": self.error_code()}});
            result.insert("structuredContent".to_owned(), code);
        }
        result
    }
}

impl Candidate {
    fn json(&self) -> Value {
        json!({
            "session_id": &*self.session_id,
            "infobase_name": self.infobase_name,
            "kind": self.kind,
        })
    }
}

fn choices(candidates: &[Candidate]) -> String {
    if candidates.is_empty() {
        return "None is connected".to_owned();
    }
    let shown: Vec<String> = candidates
        .iter()
        .take(NAMED)
        .map(|one| format!("`{}` ({}, {})", one.session_id, one.infobase_name, one.kind))
        .collect();
    let more = match candidates.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("Sessions that serve it: {}{more}", shown.join(", "))
}

fn timeout(session_id: &str, after: Duration, effect: Effect, unresponsive: bool) -> String {
    let again = if unresponsive {
        " Its calls time out repeatedly: the program does not respond and needs attention."
    } else {
        ""
    };
    match effect {
        Effect::NotStarted => format!(
            "[UPSTREAM] session `{session_id}` was busy with earlier calls for {after:?}, so this one was never sent.{again} Trying again is safe."
        ),
        Effect::Unknown => format!(
            "[UPSTREAM] session `{session_id}` did not answer within {after:?}.{again} It may or may not have taken effect: check before you repeat it."
        ),
    }
}
