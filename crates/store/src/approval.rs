//! Approvals as stored: held calls, the answers of people, and standing exceptions.
//!
//! Invariant: an approval that has ended has no arguments any more; the digest stays.

use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use toolgate_audit::{CallId, Draft, Hash, RowKind};
use toolgate_policy::{ApprovalState, Digest, Question};

/// A held call, and what people answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredApproval {
    /// Its id.
    pub id: Arc<str>,
    /// The digest of everything that it is bound to.
    pub binding: Digest,
    /// Its state.
    pub state: ApprovalState,
    /// The call.
    pub call: HeldCall,
    /// The raw arguments; `None` once it has ended.
    pub arguments: Option<Arc<str>>,
    /// Who must answer.
    pub question: Question,
    /// The answers so far: approvals, or the denial that ended it.
    pub answers: Vec<Answer>,
    /// When it was created.
    pub created: Timestamp,
    /// When it expires.
    pub expires: Timestamp,
    /// When it ended.
    pub ended: Option<Timestamp>,
}

/// What is known of a held call. Texts are those of its audit row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldCall {
    /// The id of the call that created the approval.
    pub call_id: CallId,
    /// Label of the grant.
    pub grant: Arc<str>,
    /// The identity that it represents.
    pub identity: Option<Arc<str>>,
    /// The name that the client gave itself.
    pub client: Option<Arc<str>>,
    /// The server, `sessions` or `toolgate`.
    pub server: Arc<str>,
    /// The session called, for session tools.
    pub session_id: Option<Arc<str>>,
    /// The tool's own name.
    pub tool: Arc<str>,
    /// Fingerprint of its definition, if that is known.
    pub fingerprint: Option<Hash>,
    /// Digest of the arguments.
    pub digest: Digest,
    /// A keyed digest of each argument, as a JSON object: shows later what differs, without values.
    pub members: Arc<str>,
    /// Risk class.
    pub class: Arc<str>,
    /// The rule that holds it.
    pub rule: Arc<str>,
    /// Name of the policy.
    pub policy: Option<Arc<str>>,
    /// Hash of the policy.
    pub policy_hash: Option<Hash>,
}

/// One person's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The person.
    pub person: Arc<str>,
    /// Whether they approve.
    pub approves: bool,
    /// When.
    pub at: Timestamp,
    /// Why.
    pub reason: Option<Arc<str>>,
    /// How they answered: `api`, or `in-band`.
    pub via: Arc<str>,
}

/// "Similar calls for an hour": lifts the hold of calls like one that was approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingException {
    /// Its id.
    pub id: Arc<str>,
    /// The approval it was given with.
    pub approval: Arc<str>,
    /// The grant it belongs to.
    pub grant: Arc<str>,
    /// The server of its tool.
    pub server: Arc<str>,
    /// The session called, for session tools.
    pub session_id: Option<Arc<str>>,
    /// The tool.
    pub tool: Arc<str>,
    /// Fingerprint of the definition it was given for.
    pub fingerprint: Option<Hash>,
    /// The policy it was given under; it ends when the hash changes.
    pub policy_hash: Option<Hash>,
    /// What the arguments must be, as JSON (`toolgate_policy::Kept`).
    pub kept: Arc<str>,
    /// What the rules asked of those who gave it: it lifts no hold that asks for more.
    pub question: Question,
    /// The person who gave it.
    pub person: Arc<str>,
    /// Why.
    pub reason: Option<Arc<str>>,
    /// When it was given.
    pub created: Timestamp,
    /// When it expires.
    pub expires: Timestamp,
}

/// How a call is held, if its policy holds it.
pub struct HoldRequest {
    /// The id of the approval, if a new one is created.
    pub id: Arc<str>,
    /// The digest under which its approval is found.
    pub binding: Digest,
    /// Digest of the arguments.
    pub digest: Digest,
    /// See [`HeldCall::members`].
    pub members: Arc<str>,
    /// The raw arguments.
    pub arguments: Arc<str>,
    /// Whether an approving answer still counts: its person was not revoked. Called inside the
    /// transaction.
    pub is_valid: Box<IsValid>,
}

/// Whether an answer still counts.
pub type IsValid = dyn Fn(&StoredApproval, &Answer) -> bool + Send;

/// Selects approvals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalQuery {
    /// Only those in this state.
    pub state: Option<ApprovalState>,
    /// Only those of the grant with this label.
    pub grant: Option<Arc<str>>,
    /// Only those after this one: its creation and id.
    pub after: Option<(Timestamp, Arc<str>)>,
    /// At most so many; the oldest first.
    pub limit: usize,
}

/// Approvals in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingApprovals {
    /// How many are pending.
    pub count: u64,
    /// When the oldest of them was created.
    pub oldest: Option<Timestamp>,
}

/// A notice about a pending approval that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueNotice {
    /// The approval.
    pub approval: StoredApproval,
    /// How often its notice was sent in vain.
    pub attempts: u32,
}

/// How long an approval that has ended is listed.
pub const KEPT_APPROVALS: SignedDuration = SignedDuration::from_hours(30 * 24);
/// A list ends after so many bytes of arguments, even if it is shorter than its limit.
pub const LISTED_BYTES: usize = 8 * 1024 * 1024;
/// Most pending approvals of one grant.
pub const MAX_PENDING: u64 = 10_000;
/// Most bytes of arguments of the pending approvals of one grant.
pub const MAX_PENDING_BYTES: u64 = 64 * 1024 * 1024;

impl ApprovalQuery {
    /// Whether there may be more than was found.
    pub fn may_continue(&self, found: &[StoredApproval]) -> bool {
        let bytes: usize = found.iter().map(StoredApproval::argument_bytes).sum();
        found.len() == self.limit || bytes >= LISTED_BYTES
    }
}

impl StoredApproval {
    /// How many bytes of arguments it has.
    pub fn argument_bytes(&self) -> usize {
        self.arguments.as_ref().map_or(0, |text| text.len())
    }

    /// A row about it.
    pub fn row(&self, kind: RowKind, time: Timestamp) -> Draft {
        let call = &self.call;
        Draft {
            call_id: Some(call.call_id),
            grant: Some(Arc::clone(&call.grant)),
            identity: call.identity.clone(),
            server: Some(Arc::clone(&call.server)),
            session_id: call.session_id.clone(),
            tool: Some(Arc::clone(&call.tool)),
            fingerprint: call.fingerprint,
            risk: Some(Arc::clone(&call.class)),
            rule: Some(Arc::clone(&call.rule)),
            policy: call.policy.clone(),
            policy_hash: call.policy_hash,
            approval_id: Some(Arc::clone(&self.id)),
            ..Draft::new(kind, time)
        }
    }

    /// How many people have approved.
    pub fn approving(&self) -> usize {
        self.answers.iter().filter(|answer| answer.approves).count()
    }

    /// The answer that denied it.
    pub fn denial(&self) -> Option<&Answer> {
        self.answers.iter().find(|answer| !answer.approves)
    }

    /// Whether enough people have approved.
    pub fn is_agreed(&self) -> bool {
        let needed = usize::try_from(self.question.people.max(1)).unwrap_or(usize::MAX);
        self.approving() >= needed
    }

    /// Ends it.
    pub fn end(&mut self, state: ApprovalState, now: Timestamp) {
        (self.state, self.ended, self.arguments) = (state, Some(now), None);
    }
}

impl StandingException {
    /// A row about it.
    pub fn row(&self, time: Timestamp, message: &str) -> Draft {
        Draft {
            grant: Some(Arc::clone(&self.grant)),
            server: Some(Arc::clone(&self.server)),
            session_id: self.session_id.clone(),
            tool: Some(Arc::clone(&self.tool)),
            fingerprint: self.fingerprint,
            policy_hash: self.policy_hash,
            approval_id: Some(Arc::clone(&self.id)),
            message: Some(message.into()),
            ..Draft::new(RowKind::Approval, time)
        }
    }
}

impl fmt::Debug for HoldRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HoldRequest").field("id", &self.id).finish_non_exhaustive()
    }
}
