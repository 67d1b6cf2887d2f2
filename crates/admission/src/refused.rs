//! Refusals: the answer to a request that was not sent.
//!
//! A refused `tools/call` is a tool result, so that the model can read it and adapt. Any other
//! request gets a JSON-RPC error with the same information in `data`.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use toolgate_audit::{CallId, Decision};
use toolgate_mcp::{code, write};
use toolgate_policy::{Effect, Verdict};
use toolgate_store::StoredApproval;

use crate::answer_kind::AnswerKind;

/// Why a request was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    code: &'static str,
    text: String,
    rule: Option<Arc<str>>,
    retry_after: Option<u64>,
    call_id: CallId,
    hidden: bool,
    /// The decision of the policy, for the row.
    decision: Option<Decision>,
    /// The message of the row, if it differs from `text`.
    row_message: Option<Arc<str>>,
    approval: Option<Box<RefusedApproval>>,
}

/// The approval that a refusal is about.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RefusedApproval {
    id: Arc<str>,
    expires: Timestamp,
    /// Its page, if a person can still answer.
    page: Option<String>,
    /// Why a person denied it.
    reason: Option<Arc<str>>,
}

impl Refused {
    /// The policy denied it.
    pub(crate) fn by_policy(call_id: CallId, verdict: &Verdict) -> Self {
        let code = verdict.refusal.map_or("policy_denied", toolgate_policy::Refusal::as_str);
        Self {
            code,
            text: format!("[POLICY DENIED] {}", verdict.message),
            rule: verdict.rule.clone(),
            retry_after: verdict.retry_after,
            call_id,
            hidden: verdict.effect == Effect::Hide,
            decision: Some(match verdict.effect {
                Effect::Hide => Decision::Hide,
                _ => Decision::Deny,
            }),
            row_message: Some(verdict.message.as_str().into()),
            approval: None,
        }
    }

    /// A person must approve it, and has not answered yet.
    pub(crate) fn approval_required(
        call_id: CallId,
        verdict: &Verdict,
        approval: &StoredApproval,
        page: String,
    ) -> Self {
        let (asked, until) = (approval.question.asked(), second(approval.expires));
        let tool = &approval.call.tool;
        let text = format!(
            "[APPROVAL REQUIRED] {}. Nothing was sent. The call of `{tool}` waits for {asked} until \
             {until} (approval {}). Repeat exactly the same call later: once it is approved, the repeat is \
             sent, once. Changed arguments start a new approval",
            verdict.message, approval.id
        );
        Self {
            rule: verdict.rule.clone(),
            decision: Some(Decision::Hold),
            row_message: Some(verdict.message.as_str().into()),
            approval: Some(Box::new(RefusedApproval {
                id: Arc::clone(&approval.id),
                expires: approval.expires,
                page: Some(page),
                reason: None,
            })),
            ..Self::new("approval_required", text, call_id)
        }
    }

    /// Only the user of the client may approve it, and no person can be asked.
    pub(crate) fn unanswerable(
        call_id: CallId,
        verdict: &Verdict,
        approval: &StoredApproval,
    ) -> Self {
        let text = format!(
            "[APPROVAL REQUIRED] {}. Nothing was sent. Only the user of this client may approve the \
             call, but the client cannot ask them (it did not declare `elicitation`, or the arguments \
             are too long), and the grant has no identity (approval {}). Do not repeat the call; ask \
             the operator to give the grant an identity or to change `approvers`",
            verdict.message, approval.id
        );
        let (id, expires) = (Arc::clone(&approval.id), approval.expires);
        Self {
            rule: verdict.rule.clone(),
            decision: Some(Decision::Hold),
            row_message: Some("no person can answer: the client cannot ask its user".into()),
            approval: Some(Box::new(RefusedApproval { id, expires, page: None, reason: None })),
            ..Self::new("approval_required", text, call_id)
        }
    }

    /// A person denied it.
    pub(crate) fn approval_denied(call_id: CallId, approval: &StoredApproval) -> Self {
        let reason = approval.denial().and_then(|denial| denial.reason.clone());
        let why = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
        let (tool, until) = (&approval.call.tool, second(approval.expires));
        let text = format!(
            "[APPROVAL DENIED] a person denied this call of `{tool}`{why}. Nothing was sent. Do not \
             repeat it: until {until} the same call gets this answer (approval {})",
            approval.id
        );
        Self::answered(call_id, approval, text, reason)
    }

    /// No person has answered in time.
    pub(crate) fn approval_expired(call_id: CallId, approval: &StoredApproval) -> Self {
        let reason: Arc<str> = "no person answered in time".into();
        let text = format!(
            "[APPROVAL DENIED] {reason}, so this call of `{}` was not sent (approval {} has \
             expired). Ask the user before you repeat it: a repeat is held anew",
            approval.call.tool, approval.id
        );
        Self::answered(call_id, approval, text, Some(reason))
    }

    fn answered(
        call_id: CallId,
        approval: &StoredApproval,
        text: String,
        reason: Option<Arc<str>>,
    ) -> Self {
        let (id, expires) = (Arc::clone(&approval.id), approval.expires);
        Self {
            rule: Some(Arc::clone(&approval.call.rule)),
            decision: Some(Decision::Hold),
            approval: Some(Box::new(RefusedApproval { id, expires, page: None, reason })),
            ..Self::new("approval_denied", text, call_id)
        }
    }

    /// A person must approve it, and it was written too late to wait for one, or cannot be held.
    pub(crate) fn cannot_be_held(call_id: CallId, verdict: &Verdict) -> Self {
        let text = format!(
            "[APPROVAL REQUIRED] {}. Nothing was sent. Repeat the call: the repeat waits for a person",
            verdict.message
        );
        Self {
            rule: verdict.rule.clone(),
            decision: Some(Decision::Hold),
            row_message: Some(verdict.message.as_str().into()),
            ..Self::new("approval_required", text, call_id)
        }
    }

    /// The token of its agent was replaced or has expired since the request was received.
    pub(crate) fn token_not_valid(call_id: CallId) -> Self {
        let text = "[POLICY DENIED] the token with which this call was made is not valid any more. Nothing \
                    was sent. Do not retry; ask the operator for a new token";
        let rule = Some("(no policy)".into());
        let decision = Some(Decision::Deny);
        Self { rule, decision, ..Self::new("policy_denied", text.to_owned(), call_id) }
    }

    /// A person froze it.
    pub(crate) fn frozen(call_id: CallId, what: &str) -> Self {
        let text = format!(
            "[FROZEN] {what} by a person, so nothing was sent. Do not retry; ask the operator when \
             it is lifted"
        );
        Self::new("frozen", text, call_id)
    }

    /// It could not be recorded, so it was not sent.
    pub(crate) fn not_audited(call_id: CallId, why: &str) -> Self {
        let text = format!(
            "[NOT SENT] the audit cannot be written, so nothing was sent: {why}. Retry later; if \
             it lasts, tell the operator"
        );
        Self::new("not_audited", text, call_id)
    }

    /// There is no such tool for this grant.
    pub(crate) fn unknown_tool(call_id: CallId, shown: &str) -> Self {
        let text = format!(
            "There is no tool `{shown}` that you may use. Nothing was sent. List the tools again \
             and use a listed name."
        );
        Self::new("unknown_tool", text, call_id)
    }

    /// There is no such prompt for this grant.
    pub(crate) fn unknown_prompt(call_id: CallId, name: &str) -> Self {
        let text = format!("there is no prompt `{name}` that you may use; nothing was sent");
        Self { hidden: true, ..Self::new("unknown_prompt", text, call_id) }
    }

    /// The grant no longer reaches the server or session.
    pub(crate) fn out_of_reach(call_id: CallId) -> Self {
        let text = "There is no such tool that you may use: its server or session is not within your \
                    reach. Nothing was sent. List the tools again";
        Self::new("unknown_tool", text.to_owned(), call_id)
    }

    /// The server was removed from the configuration, or changed, before the call was written.
    pub fn retired(call_id: CallId, server: &str) -> Self {
        let text = format!(
            "[UPSTREAM] server `{server}` was removed or changed before the call could be sent, so \
             nothing was sent. List the tools again and repeat the call"
        );
        Self::new("upstream_unavailable", text, call_id)
    }

    /// The definition of the tool may not be used.
    pub fn quarantined(call_id: CallId, server: &str, tool: &str, why: &str) -> Self {
        let text = format!(
            "[QUARANTINED] the tool `{tool}` of `{server}` may not be used: {why}. Nothing was sent. \
             Do not retry; ask the operator to review it (`toolgate tool show --diff {server}/{tool}`)"
        );
        Self::new("quarantined", text, call_id)
    }

    /// The arguments do not match the schema of the tool.
    pub fn invalid_arguments(call_id: CallId, what: &str) -> Self {
        let text =
            format!("[INVALID ARGUMENTS] {what}. Nothing was sent. Correct it and call again.");
        Self::new("invalid_arguments", text, call_id)
    }

    /// The grant has as many open tasks as it may have.
    pub(crate) fn too_many_tasks(call_id: CallId, max: usize) -> Self {
        let text = format!(
            "[UPSTREAM] your grant has {max} open tasks, which is the limit, so nothing was sent. \
             Cancel tasks that you do not need (`tasks/cancel`), or query those that may have ended \
             (`tasks/get`), and repeat the call"
        );
        Self::new("upstream_unavailable", text, call_id)
    }

    /// Adds that an earlier round of the call was sent.
    #[must_use]
    pub fn of_further_round(mut self) -> Self {
        self.text.push_str(". Only the first part of this call was sent; it is not continued");
        self
    }

    /// The call cannot be routed.
    pub(crate) fn unroutable(call_id: CallId, code: &'static str, text: &str) -> Self {
        Self::new(code, text.to_owned(), call_id)
    }

    /// The `error_code` sent to the agent.
    pub fn code(&self) -> &'static str {
        self.code
    }

    pub(crate) fn rule(&self) -> Option<&Arc<str>> {
        self.rule.as_ref()
    }

    /// The approval that it is about.
    pub(crate) fn approval_id(&self) -> Option<&Arc<str>> {
        self.approval.as_ref().map(|approval| &approval.id)
    }

    /// The message of its row.
    pub fn row_message(&self) -> &str {
        self.row_message.as_deref().unwrap_or(&self.text)
    }

    pub(crate) fn decision(&self) -> Option<Decision> {
        self.decision
    }

    /// The message that answers the agent's request `id`.
    pub fn answer(&self, id: &str, expects: AnswerKind) -> Bytes {
        let meta = Value::Object(self.meta());
        match expects {
            AnswerKind::ToolResult => write::result(id, &self.result().to_string()),
            // Answered like a resource that does not exist.
            AnswerKind::Resource if self.hidden => {
                write::error(Some(id), code::RESOURCE_NOT_FOUND, "resource not found", None)
            }
            AnswerKind::Resource | AnswerKind::Tools | AnswerKind::Prompts | AnswerKind::Other
                if self.hidden =>
            {
                write::error(Some(id), code::INVALID_PARAMS, "not found", None)
            }
            AnswerKind::Resource | AnswerKind::Tools | AnswerKind::Prompts | AnswerKind::Other => {
                write::error(Some(id), code::INVALID_PARAMS, &self.text, Some(&meta.to_string()))
            }
        }
    }

    /// The refusal as a tool result.
    pub fn result(&self) -> Value {
        json!({
            "content": [{"type": "text", "text": self.text}],
            "isError": true,
            "_meta": Value::Object(self.meta()),
        })
    }

    fn new(code: &'static str, text: String, call_id: CallId) -> Self {
        let (rule, retry_after, decision, row_message) = (None, None, None, None);
        let (hidden, approval) = (false, None);
        Self { code, text, rule, retry_after, call_id, hidden, decision, row_message, approval }
    }

    fn meta(&self) -> Map<String, Value> {
        let mut meta = Map::new();
        meta.insert("error_code".into(), self.code.into());
        if let Some(rule) = &self.rule {
            meta.insert("rule".into(), (**rule).into());
        }
        if let Some(seconds) = self.retry_after {
            meta.insert("retry_after_s".into(), seconds.into());
        }
        if let Some(approval) = &self.approval {
            meta.insert("approval_id".into(), (*approval.id).into());
            meta.insert("expires_at".into(), approval.expires.to_string().into());
            if let Some(page) = &approval.page {
                meta.insert("console_url".into(), page.as_str().into());
            }
            if let Some(reason) = &approval.reason {
                meta.insert("reason".into(), (**reason).into());
            }
        }
        meta.insert("effect".into(), "not_started".into());
        meta.insert("call_id".into(), self.call_id.to_string().into());
        meta
    }
}
/// A time for people, without fractions of a second.
fn second(time: Timestamp) -> Timestamp {
    time.round(jiff::Unit::Second).unwrap_or(time)
}
