//! The result of one check.

use serde_json::{Value, json};
use toolgate_control::visible;

/// One check.
pub(super) struct Check {
    pub(super) id: String,
    pub(super) status: Status,
    message: String,
    /// What to do.
    fix: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Ok,
    Warn,
    Fail,
}

impl Check {
    pub(super) fn ok(id: impl Into<String>, message: impl Into<String>) -> Self {
        Self { id: id.into(), status: Status::Ok, message: message.into(), fix: None }
    }

    pub(super) fn warn(id: impl Into<String>, message: impl Into<String>) -> Self {
        Self { status: Status::Warn, ..Self::ok(id, message) }
    }

    pub(super) fn fail(id: impl Into<String>, message: impl Into<String>) -> Self {
        Self { status: Status::Fail, ..Self::ok(id, message) }
    }

    pub(super) fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }

    pub(super) fn json(&self) -> Value {
        let status = match self.status {
            Status::Ok => "ok",
            Status::Warn => "warn",
            Status::Fail => "fail",
        };
        json!({"id": self.id, "status": status, "message": self.message, "fix": self.fix})
    }

    pub(super) fn line(&self) -> String {
        let sign = match self.status {
            Status::Ok => "✓",
            Status::Warn => "!",
            Status::Fail => "✗",
        };
        let fix = self.fix.as_ref().map(|fix| format!("\n  {:<18} -> {}", "", visible(fix)));
        let line = visible(&format!("{sign} {:<18} {}", self.id, self.message));
        format!("{line}{}\n", fix.unwrap_or_default())
    }
}
