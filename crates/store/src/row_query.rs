//! Selects rows of the audit.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate_audit::{Decision, Row, RowKind};

/// The maximum number of rows that one query returns.
pub const MAX_ROWS: usize = 1_000;

/// Selects rows of the audit: those that match every filter that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowQuery {
    /// Only rows after this sequence number.
    pub after: u64,
    /// Only rows before this sequence number.
    pub before: Option<u64>,
    /// Whether the newest rows come first.
    pub newest_first: bool,
    /// The maximum number of rows, capped at [`MAX_ROWS`].
    pub limit: usize,
    /// Only rows of this grant (label).
    pub grant: Option<String>,
    /// Only rows of this tool.
    pub tool: Option<String>,
    /// Only rows with this decision.
    pub decision: Option<Decision>,
    /// Only rows of this kind.
    pub kind: Option<RowKind>,
    /// Only rows about a change by this person.
    pub person: Option<String>,
    /// Only rows of this server; `sessions` is all sessions.
    pub server: Option<String>,
    /// Only rows of this session.
    pub session: Option<String>,
    /// Only rows with this error code.
    pub code: Option<String>,
    /// Only rows of this time or later.
    pub since: Option<Timestamp>,
    /// Only rows before this time.
    pub until: Option<Timestamp>,
}

impl RowQuery {
    /// Whether a row matches every filter; order and limit do not matter.
    pub fn matches(&self, row: &Row) -> bool {
        let draft = &row.draft;
        let is = |wanted: &Option<String>, value: &Option<Arc<str>>| {
            wanted.is_none() || wanted.as_deref() == value.as_deref()
        };
        row.seq > self.after
            && self.before.is_none_or(|before| row.seq < before)
            && is(&self.grant, &draft.grant)
            && is(&self.tool, &draft.tool)
            && is(&self.person, &draft.person)
            && is(&self.server, &draft.server)
            && is(&self.session, &draft.session_id)
            && is(&self.code, &draft.error_code)
            && (self.decision.is_none() || self.decision == draft.decision)
            && self.kind.is_none_or(|kind| kind == draft.kind)
            && self.since.is_none_or(|since| draft.time >= since)
            && self.until.is_none_or(|until| draft.time < until)
    }
}
