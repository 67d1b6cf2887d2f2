//! Held calls: finding, creating, answering, consuming and expiring their approvals.
//!
//! Invariant: an approval is consumed in the transaction that admits its call, so it admits one call.
//! Invariant: every change of state has its row in the same transaction.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate_audit::{Decision, Draft, RowKind, truncate};
use toolgate_policy::{Approval, ApprovalState, Contribution, Effect, Question, Refusal, Verdict};

use super::{Group, JobResult};
use crate::{
    AdmitRequest, Answer, Change, ChangeError, HeldCall, HoldRequest, MAX_PENDING,
    MAX_PENDING_BYTES, StoreError, StoreErrorKind, StoredApproval,
};

/// Whether a rule holds the call, or would if no stricter one refused it.
pub(super) fn is_held(verdict: &Verdict) -> bool {
    let holds = |rule: &Contribution| rule.effect == Effect::Hold && !rule.shadow;
    verdict.rules.iter().any(holds)
}

/// How a call with this approval is decided.
pub(super) fn as_decided(found: Option<&StoredApproval>) -> Approval {
    match found.map(|found| found.state) {
        None => Approval::None,
        Some(ApprovalState::Approved) => Approval::Approved,
        Some(_) => Approval::Pending,
    }
}

impl Group<'_> {
    /// The approval of this call that is not over. One whose time is up expires here, and answers of
    /// people who were revoked since are dropped.
    pub(super) fn live_approval(
        &mut self,
        hold: &HoldRequest,
        now: Timestamp,
    ) -> Result<Option<StoredApproval>, StoreError> {
        let Some(mut found) = self.transaction.live_approval(&hold.binding)? else {
            return Ok(None);
        };
        if found.expires <= now {
            self.expire(found, now)?;
            return Ok(None);
        }
        let before = found.answers.len();
        if found.state != ApprovalState::Denied {
            let mut answers = std::mem::take(&mut found.answers);
            answers.retain(|answer| (hold.is_valid)(&found, answer));
            found.answers = answers;
        }
        if found.answers.len() < before {
            if found.state == ApprovalState::Approved && !found.is_agreed() {
                found.state = ApprovalState::Pending;
            }
            let mut row = found.row(RowKind::Approval, now);
            row.message = Some("pending: the person who answered may not answer any more".into());
            self.append(row)?;
            self.transaction.put_approval(&found)?;
        }
        Ok(Some(found))
    }

    /// Holds a call: with the approval that was found, or a new one.
    pub(super) fn hold(
        &mut self,
        request: &AdmitRequest,
        verdict: Box<Verdict>,
        found: Option<StoredApproval>,
        now: Timestamp,
    ) -> Result<JobResult, StoreError> {
        if let Some(found) = found {
            if found.state != ApprovalState::Denied {
                return Ok(JobResult::Held(verdict, Some(Box::new(found))));
            }
            let mut denial = Draft { kind: RowKind::Denied, ..request.draft.clone() };
            denial.decision = Some(Decision::Hold);
            denial.error_code = Some("approval_denied".into());
            denial.rule = Some(Arc::clone(&found.call.rule));
            denial.approval_id = Some(Arc::clone(&found.id));
            denial.message = found.denial().and_then(|denial| denial.reason.clone());
            self.deny(denial.truncate_arguments())?;
            return Ok(JobResult::AnsweredNo(Box::new(found)));
        }
        let Some(hold) = &request.hold else { return Ok(JobResult::Held(verdict, None)) };
        let Some(approval) = created(request, hold, &verdict, now) else {
            return Ok(super::internal("a held call without a grant, server or tool"));
        };
        let (count, bytes) = self.transaction.pending_of(&approval.call.grant)?;
        let more = u64::try_from(hold.arguments.len()).unwrap_or(u64::MAX);
        if count >= MAX_PENDING || bytes.saturating_add(more) > MAX_PENDING_BYTES {
            let refused = Box::new(too_many(&verdict));
            self.deny(super::refusal(&request.draft, &refused))?;
            return Ok(JobResult::Refused(refused));
        }
        let mut row = Draft { kind: RowKind::Held, ..request.draft.clone() };
        row.decision = Some(Decision::Hold);
        row.rule = Some(Arc::clone(&approval.call.rule));
        row.approval_id = Some(Arc::clone(&approval.id));
        self.append(row)?;
        self.transaction.put_approval(&approval)?;
        Ok(JobResult::Held(verdict, Some(Box::new(approval))))
    }

    /// The call is admitted: its approval is used up.
    pub(super) fn consume(
        &mut self,
        mut approval: StoredApproval,
        request: &AdmitRequest,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        approval.end(ApprovalState::Consumed, now);
        let mut row = approval.row(RowKind::Approval, now);
        row.call_id = request.draft.call_id;
        row.message = Some("consumed".into());
        self.append(row)?;
        self.transaction.put_approval(&approval)
    }

    /// A person answers. The row of the answer is completed and written here.
    pub(super) fn answer(
        &mut self,
        id: &str,
        answer: &Answer,
        draft: &Draft,
        now: Timestamp,
    ) -> Result<Result<(), ChangeError>, StoreError> {
        let Some(mut approval) = self.transaction.approval(id)? else {
            return Ok(Err(ChangeError::Unknown(id.to_owned())));
        };
        if !approval.state.is_over() && approval.expires <= now {
            self.expire(approval, now)?;
            return Ok(Err(ChangeError::NotPending(ApprovalState::Expired)));
        }
        if approval.state != ApprovalState::Pending {
            return Ok(Err(ChangeError::NotPending(approval.state)));
        }
        if approval.answers.iter().any(|given| given.person == answer.person) && answer.approves {
            return Ok(Err(ChangeError::AlreadyAnswered(answer.person.to_string())));
        }
        approval.answers.push(Answer { at: now, ..answer.clone() });
        if !answer.approves {
            approval.end(ApprovalState::Denied, now);
        } else if approval.is_agreed() {
            approval.state = ApprovalState::Approved;
        }
        let mut row = approval.row(RowKind::Approval, draft.time);
        row.person.clone_from(&draft.person);
        row.via.clone_from(&draft.via);
        let mut message = match approval.state {
            ApprovalState::Pending => {
                format!(
                    "approved by {} of {} people",
                    approval.approving(),
                    approval.question.people
                )
            }
            state => state.to_string(),
        };
        if let Some(reason) = &answer.reason {
            message = format!("{message}: {reason}");
        }
        row.message = Some(truncate(&message).unwrap_or_else(|| message.as_str().into()));
        self.append(row)?;
        self.transaction.put_approval(&approval)?;
        self.transaction.approvals_changed()?;
        Ok(Ok(()))
    }

    /// Ends approvals and standing exceptions whose time is up.
    pub(super) fn expire_due(&mut self, now: Timestamp) -> Result<(), StoreError> {
        for approval in self.transaction.due_approvals(now)? {
            self.expire(approval, now)?;
        }
        for exception in self.transaction.due_exceptions(now)? {
            let row = exception.row(now, "a standing exception has expired");
            self.change(&Change::EndException(exception.id), &row, now)?.map_err(|_| {
                StoreError::new(StoreErrorKind::Internal, "an exception that was found is gone")
            })?;
        }
        Ok(())
    }

    fn expire(&mut self, mut approval: StoredApproval, now: Timestamp) -> Result<(), StoreError> {
        if approval.state.is_over() {
            // A denial stays one; the next call of its kind is held anew.
            return self.transaction.forget_live(&approval.id);
        }
        let was = approval.state;
        approval.end(ApprovalState::Expired, now);
        let mut row = approval.row(RowKind::Approval, now);
        row.message = Some(match was {
            ApprovalState::Approved => "expired: approved, and not used in time".into(),
            _ => "expired: not answered in time".into(),
        });
        self.append(row)?;
        self.transaction.put_approval(&approval)?;
        self.transaction.approvals_changed()
    }
}

/// The approval of a call that is held for the first time.
fn created(
    request: &AdmitRequest,
    hold: &HoldRequest,
    verdict: &Verdict,
    now: Timestamp,
) -> Option<StoredApproval> {
    let (draft, asks) = (&request.draft, verdict.hold.as_ref()?);
    let call = HeldCall {
        call_id: draft.call_id?,
        grant: draft.grant.clone()?,
        identity: draft.identity.clone(),
        client: draft.client.clone(),
        server: draft.server.clone()?,
        session_id: draft.session_id.clone(),
        tool: draft.tool.clone()?,
        fingerprint: draft.fingerprint,
        digest: hold.digest,
        members: Arc::clone(&hold.members),
        class: draft.risk.clone().unwrap_or_default(),
        rule: truncate(&asks.rule).unwrap_or_else(|| Arc::clone(&asks.rule)),
        policy: draft.policy.clone(),
        policy_hash: draft.policy_hash,
    };
    Some(StoredApproval {
        id: Arc::clone(&hold.id),
        binding: hold.binding,
        state: ApprovalState::Pending,
        call,
        arguments: Some(Arc::clone(&hold.arguments)),
        question: Question::of(asks),
        answers: Vec::new(),
        created: now,
        expires: asks.expires.after(now),
        ended: None,
    })
}

/// The verdict on a call whose grant has too many pending approvals.
fn too_many(verdict: &Verdict) -> Verdict {
    let message = format!(
        "{}, and too many approvals of this grant are pending already; wait until people have \
         answered them",
        verdict.message
    );
    Verdict {
        effect: Effect::Deny,
        refusal: Some(Refusal::RateLimited),
        message,
        retry_after: Some(60),
        hold: None,
        reservations: Vec::new(),
        ..verdict.clone()
    }
}
