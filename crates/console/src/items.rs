//! Items of the API, as far as pages show them.

use serde::Deserialize;
use serde_json::Value;
use toolgate_catalog::Labels;

/// A server.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) transport: String,
    pub(crate) address: String,
    pub(crate) command: Option<String>,
    pub(crate) pin: String,
    pub(crate) tools: Option<usize>,
    pub(crate) state: String,
    pub(crate) running: usize,
    pub(crate) last_error: Option<String>,
    pub(crate) frozen: bool,
}

/// A grant.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Grant {
    pub(crate) id: String,
    pub(crate) label: String,
    pub(crate) source: String,
    pub(crate) identity: Option<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) servers: Option<Vec<String>>,
    pub(crate) sessions: Option<Value>,
    pub(crate) policy: Option<String>,
    pub(crate) expires: Option<String>,
    pub(crate) last_use: Option<String>,
    pub(crate) revoked: Option<String>,
    pub(crate) frozen: bool,
}

/// A person.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct PersonItem {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) roles: Vec<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) expires: Option<String>,
    pub(crate) revoked: Option<String>,
}

/// A policy without its text.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct PolicyItem {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) version: Option<u64>,
    pub(crate) hash: Option<String>,
    pub(crate) state: String,
    pub(crate) created: Option<String>,
}

/// A policy with its text.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct PolicyText {
    #[serde(flatten)]
    pub(crate) item: PolicyItem,
    pub(crate) document: String,
}

/// A version of a policy.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct PolicyVersion {
    pub(crate) version: u64,
    pub(crate) created: String,
    pub(crate) document: String,
}

/// A tool of the last lists.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Tool {
    pub(crate) server: String,
    pub(crate) name: String,
    pub(crate) class: String,
    #[serde(default)]
    pub(crate) state: String,
    /// What it can do with data, if that is known.
    pub(crate) labels: Option<Labels>,
}

/// The tools that policies are checked against.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct KnownTools {
    pub(crate) tools: Vec<Tool>,
    pub(crate) unlisted: Vec<String>,
}

/// A finding in a document.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Finding {
    pub(crate) code: String,
    pub(crate) severity: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// The result of a check.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Checked {
    pub(crate) valid: bool,
    pub(crate) problems: Vec<Finding>,
    pub(crate) tools: Vec<ToolDecision>,
}

/// The decision about one tool.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ToolDecision {
    pub(crate) server: String,
    pub(crate) tool: String,
    pub(crate) class: String,
    pub(crate) effect: String,
    pub(crate) rule: String,
    pub(crate) limits: Vec<String>,
}

/// What a document would change.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Plan {
    pub(crate) differences: Vec<Difference>,
    pub(crate) resets: Vec<Value>,
    pub(crate) compared: usize,
}

/// One decision that differs.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Difference {
    pub(crate) grant: String,
    pub(crate) server: String,
    pub(crate) tool: String,
    pub(crate) before: Outlook,
    pub(crate) after: Outlook,
}

/// The decision about a call.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Outlook {
    pub(crate) effect: String,
    pub(crate) limits: Vec<String>,
    pub(crate) terms: Vec<String>,
}

/// A row of the audit.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Row {
    pub(crate) seq: u64,
    pub(crate) time: String,
    pub(crate) kind: String,
    pub(crate) call_id: Option<String>,
    pub(crate) method: Option<String>,
    pub(crate) grant: Option<String>,
    pub(crate) identity: Option<String>,
    pub(crate) person: Option<String>,
    pub(crate) client: Option<String>,
    pub(crate) via: Option<String>,
    pub(crate) server: Option<String>,
    pub(crate) session_id: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) risk: Option<String>,
    pub(crate) decision: Option<String>,
    pub(crate) error_code: Option<String>,
    pub(crate) rule: Option<String>,
    pub(crate) policy: Option<String>,
    pub(crate) policy_version: Option<u64>,
    pub(crate) argument_keys: Value,
    pub(crate) arguments: Value,
    pub(crate) counters: Value,
    pub(crate) approval_id: Option<String>,
    pub(crate) outcome: Option<String>,
    pub(crate) effect: Option<String>,
    pub(crate) upstream_ms: Option<u64>,
    pub(crate) total_ms: Option<u64>,
    pub(crate) message: Option<String>,
    pub(crate) count: Option<u64>,
    pub(crate) hash: String,
}
