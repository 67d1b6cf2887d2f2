//! One transaction: runs the jobs of a group in order and extends the chain.

mod clock;
mod hold;
mod verdict;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};
use toolgate_audit::{
    CallId, Checkpoint, Coalesced, Decision, Draft, Effect, Outcome, Row, RowKind, Signer, truncate,
};
use toolgate_policy::{
    self as policy, Approval, Claim, Counted, Lifted, Ownership, Reservation, Usage, Verdict,
};

use self::hold::{as_decided, is_held};
use self::verdict::{LimitReached, fits, refusal, shadow};
use super::{CheckpointSchedule, Finish, Job, writer::WriterState};
use crate::{
    AdmitRequest, Change, ChangeError, Completion, RoundKind, Settled, StoreError, StoreErrorKind,
    StoredApproval,
    backend::{BackendState, ChangeOutcome, Refund, Transaction},
};

/// How far the stored high-water mark may lag. Counter entries carry their own time, so a clock
/// step within this interval refills nothing.
const MARK: SignedDuration = SignedDuration::from_secs(1);

pub(super) struct Group<'a> {
    transaction: &'a mut dyn Transaction,
    memory: &'a mut WriterState,
    state: BackendState,
    may_admit: Result<(), StoreError>,
    close: bool,
}

/// The result of a job, valid once the transaction is committed.
pub(super) enum JobResult {
    Admitted { call_id: CallId, intent: Box<Draft>, seq: u64, verdict: Box<Verdict> },
    NotWaiting,
    Refused(Box<Verdict>),
    Held(Box<Verdict>, Option<Box<StoredApproval>>),
    AnsweredNo(Box<StoredApproval>),
    Stale,
    Settled(Settled),
    Written(u64),
    Changed(Result<u64, ChangeError>),
    Fault(StoreError),
    Nothing,
}

impl<'a> Group<'a> {
    pub(super) fn begin(
        transaction: &'a mut dyn Transaction,
        memory: &'a mut WriterState,
    ) -> Result<Self, StoreError> {
        let state = transaction.state()?;
        let may_admit = transaction.may_admit();
        if memory.generation != state.generation && memory.now > state.mark {
            // A person may have accepted an earlier clock in another process; counter entries carry
            // their own time.
            memory.now = state.mark;
        }
        memory.generation = state.generation;
        memory.now = memory.now.max(state.mark);
        Ok(Self { transaction, memory, state, may_admit, close: false })
    }

    pub(super) fn run(&mut self, job: &mut Job) -> Result<JobResult, StoreError> {
        match job {
            Job::Admit { request, .. } => self.admit(request),
            Job::Finish(finish) => self.finish(finish),
            Job::Deny(draft, _) => self.deny((**draft).clone()),
            Job::Record(draft, _) => {
                self.time(draft.time);
                Ok(JobResult::Written(self.append((**draft).clone())?.seq))
            }
            Job::Change(change, _) => {
                let (change, draft) = &**change;
                let now = match change {
                    Change::AcceptClock => self.accept_clock(draft.time),
                    _ => self.time(draft.time),
                };
                if let Change::Answer { approval, answer } = change {
                    let answered = self.answer(approval, answer, draft, now)?;
                    return Ok(JobResult::Changed(answered.map(|()| self.state.generation)));
                }
                self.change(change, draft, now).map(JobResult::Changed)
            }
            Job::Continue(call, task, until) => {
                self.transaction.continue_as_task(*call, task, *until)?;
                Ok(JobResult::Nothing)
            }
            Job::EndTask(ended) => {
                let (task, ending) = &**ended;
                for call in self.transaction.left_as_task(task)? {
                    let intent = Draft { call_id: Some(call.call_id), ..call.intent };
                    self.settle(&intent, ending.clone())?;
                }
                Ok(JobResult::Nothing)
            }
            Job::Deliver(id, next) => {
                self.transaction.note_delivery(id, *next)?;
                Ok(JobResult::Nothing)
            }
            Job::Keep(change) => {
                self.transaction.change(change, self.memory.now)?;
                Ok(JobResult::Nothing)
            }
            Job::Touch(grant, now) => {
                // Every call touches its grant; one write per second is enough.
                let now = self.time(*now);
                self.memory.touched.insert(Arc::clone(grant), now);
                Ok(JobResult::Nothing)
            }
            Job::Tick(now) => self.tick(*now),
            Job::Close(now, ..) => {
                let now = self.time(*now);
                let rest = self.memory.coalescer.flush(now);
                self.memory.owed.extend(rest);
                self.close = true;
                self.write_touched()?;
                Ok(JobResult::Nothing)
            }
        }
    }

    /// Makes a change together with its row; answers the generation.
    fn change(
        &mut self,
        change: &Change,
        row: &Draft,
        now: Timestamp,
    ) -> Result<Result<u64, ChangeError>, StoreError> {
        Ok(match self.transaction.change(change, now)? {
            ChangeOutcome::Made => {
                self.state.generation += u64::from(change.is_setup());
                self.memory.generation = self.state.generation;
                self.append(row.clone())?;
                Ok(self.state.generation)
            }
            ChangeOutcome::NameTaken(name) => Err(ChangeError::NameTaken(name)),
            ChangeOutcome::Unknown(name) => Err(ChangeError::Unknown(name)),
            ChangeOutcome::AlreadyFrozen(id) => Err(ChangeError::AlreadyFrozen(id)),
        })
    }

    // === a call ===

    fn admit(&mut self, request: &AdmitRequest) -> Result<JobResult, StoreError> {
        if let Err(fault) = &self.may_admit {
            return Ok(JobResult::Fault(fault.clone()));
        }
        if request.generation.is_some_and(|known| known != self.state.generation) {
            return Ok(JobResult::Stale);
        }
        let Some(call_id) = request.draft.call_id else {
            return Ok(internal("a call without an id"));
        };
        let now = self.time(request.draft.time);
        let Some(mut verdict) = self.decide(request, Approval::None, now) else {
            return Ok(internal("panic during the decision"));
        };
        let mut found = None;
        if let Some(hold) = &request.hold
            && request.round == RoundKind::First
            && is_held(&verdict)
        {
            found = self.live_approval(hold, now)?;
            if found.is_some() {
                let Some(again) = self.decide(request, as_decided(found.as_ref()), now) else {
                    return Ok(internal("panic during the decision"));
                };
                verdict = again;
            }
        }
        match verdict.effect {
            _ if request.round == RoundKind::Next && verdict.effect <= policy::Effect::Hold => {
                self.resume(request, call_id, verdict)
            }
            policy::Effect::Hold => self.hold(request, verdict, found, now),
            policy::Effect::Deny | policy::Effect::Hide => {
                self.deny(refusal(&request.draft, &verdict))?;
                Ok(JobResult::Refused(verdict))
            }
            policy::Effect::Allow => {
                let used = found.filter(|_| verdict.lifted == Some(Lifted::Approval));
                let id = used.as_ref().map(|approval| Arc::clone(&approval.id));
                let taken = self.take(request, call_id, verdict, id, now)?;
                if let (JobResult::Admitted { .. }, Some(approval)) = (&taken, used) {
                    self.consume(approval, request, now)?;
                }
                Ok(taken)
            }
        }
    }

    /// The verdict on a call; `None` after a panic.
    fn decide(
        &self,
        request: &AdmitRequest,
        approval: Approval,
        now: Timestamp,
    ) -> Option<Box<Verdict>> {
        let usage: &dyn Usage = self.transaction;
        let decided = catch_unwind(AssertUnwindSafe(|| match request.round {
            RoundKind::First => (request.decide)(usage, approval, now),
            // The call was counted in its first round; ownership is still checked.
            RoundKind::Next => {
                let owns = |claim: &Claim<'_>| usage.owns(claim);
                let exceptions = usage.exceptions();
                (request.decide)(&Counted { owns: &owns, exceptions }, approval, now)
            }
        }));
        decided.ok().map(Box::new)
    }

    fn take(
        &mut self,
        request: &AdmitRequest,
        call_id: CallId,
        verdict: Box<Verdict>,
        approval: Option<Arc<str>>,
        now: Timestamp,
    ) -> Result<JobResult, StoreError> {
        let mut intent = Draft { kind: RowKind::Intent, ..request.draft.clone() };
        (intent.decision, intent.rule) = match &verdict.shadow {
            None => (Some(Decision::Allow), verdict.rule.clone()),
            Some(would) => (Some(shadow(would.effect)), Some(would.rule.clone())),
        };
        intent.rule = intent.rule.map(|rule| truncate(&rule).unwrap_or(rule));
        intent.approval_id = match &verdict.lifted {
            Some(Lifted::Exception(id)) => Some(id.as_str().into()),
            _ => approval,
        };
        let mut fitting: Vec<Reservation> = Vec::with_capacity(verdict.reservations.len());
        for reservation in &verdict.reservations {
            match fits(self.transaction, reservation, now) {
                Ok(change) => {
                    intent.counters.extend(change);
                    fitting.push(reservation.clone());
                }
                // In shadow mode: taken if it fits, never refused.
                Err(LimitReached) if !reservation.enforced => {}
                Err(LimitReached) => return Ok(internal("a counter was full after the decision")),
            }
        }
        let Row { seq, draft, .. } = self.append(intent)?;
        self.transaction.open(call_id, seq, &fitting, now)?;
        Ok(JobResult::Admitted { call_id, intent: Box::new(draft), seq, verdict })
    }

    /// The intent row is already written and all counters are taken.
    fn resume(
        &mut self,
        request: &AdmitRequest,
        call_id: CallId,
        verdict: Box<Verdict>,
    ) -> Result<JobResult, StoreError> {
        let Some(seq) = self.transaction.resume(call_id)? else { return Ok(JobResult::NotWaiting) };
        let intent = Box::new(request.draft.clone());
        Ok(JobResult::Admitted { call_id, intent, seq, verdict })
    }

    pub(super) fn finish(&mut self, finish: &Finish) -> Result<JobResult, StoreError> {
        let dropped = || Completion::new(Outcome::Unknown, Effect::Unknown, self.memory.now);
        let completion = finish.completion.clone().unwrap_or_else(dropped);
        self.settle(&finish.intent, completion).map(JobResult::Settled)
    }

    fn settle(&mut self, intent: &Draft, completion: Completion) -> Result<Settled, StoreError> {
        let now = self.time(completion.time);
        let Some(call_id) = intent.call_id else { return Ok(Settled::default()) };
        let not_started = completion.effect == Effect::NotStarted && !completion.stays_counted;
        let back = if not_started { Refund::All } else { Refund::Nothing };
        match completion.outcome {
            Outcome::InputRequired => self.transaction.park(call_id, now)?,
            _ => self.transaction.settle(call_id, back)?,
        }
        let grant = intent.grant.as_deref().unwrap_or_default();
        let mut settled = Settled::default();
        for yielded in completion.ownership.yields {
            let identity = intent.identity.as_deref();
            match self.transaction.own(&yielded, grant, identity, now)? {
                Ownership::Recorded => {}
                Ownership::Conflict => settled.conflicts.push(yielded),
            }
        }
        for ended in &completion.ownership.ends {
            self.transaction.end(ended)?;
        }
        let mut row = Draft::new(RowKind::Outcome, completion.time);
        row.call_id = intent.call_id;
        row.grant.clone_from(&intent.grant);
        row.person.clone_from(&intent.person);
        row.server.clone_from(&intent.server);
        row.session_id.clone_from(&intent.session_id);
        row.tool.clone_from(&intent.tool);
        row.fingerprint = intent.fingerprint;
        (row.outcome, row.effect) = (Some(completion.outcome), Some(completion.effect));
        (row.upstream_ms, row.total_ms) = (completion.upstream_ms, completion.total_ms);
        row.error_code = completion.error_code;
        row.message = match (completion.message, settled.conflicts.first()) {
            (message, None) => message,
            (message, Some(conflict)) => {
                let prefix = message.as_deref().map(|text| format!("{text}; ")).unwrap_or_default();
                let kind = &conflict.kind;
                Some(format!("{prefix}conflict: this `{kind}` belongs to another grant").into())
            }
        };
        self.append(row)?;
        Ok(settled)
    }

    fn deny(&mut self, draft: Draft) -> Result<JobResult, StoreError> {
        let now = self.time(draft.time);
        self.end_minute(now);
        match self.memory.coalescer.denied(Draft { kind: RowKind::Denied, ..draft }) {
            Coalesced::Row(draft) => self.append(*draft).map(|row| JobResult::Written(row.seq)),
            Coalesced::Counted => Ok(JobResult::Nothing),
        }
    }

    // === the chain ===

    fn append(&mut self, draft: Draft) -> Result<Row, StoreError> {
        let head = &mut self.state.head;
        let row = if self.transaction.forgets_rows() {
            // The hash is never read.
            head.seq += 1;
            Row { seq: head.seq, draft, hash: head.hash }
        } else {
            head.seal(draft)
        };
        self.transaction.append(&row)?;
        Ok(row)
    }

    /// Writes what every group ends with; returns the generation, the version of the approvals and
    /// the signed checkpoint.
    pub(super) fn end(
        mut self,
        signer: Option<&Signer>,
        due: CheckpointSchedule,
    ) -> Result<(u64, u64, Option<Checkpoint>), StoreError> {
        for draft in self.memory.owed.clone() {
            self.append(draft)?;
        }
        let now = self.memory.now;
        if now.duration_since(self.state.mark) >= MARK {
            self.transaction.set_mark(now)?;
        }
        let checkpoint = match signer {
            Some(signer) if self.is_checkpoint_due(due, now) => {
                let checkpoint = signer.sign(self.state.head, now);
                self.transaction.checkpoint(&checkpoint)?;
                Some(checkpoint)
            }
            _ => None,
        };
        Ok((self.state.generation, self.transaction.approvals_version(), checkpoint))
    }

    fn is_checkpoint_due(&self, due: CheckpointSchedule, now: Timestamp) -> bool {
        let head = self.state.head.seq;
        let (last, at) = self.state.checkpoint.unwrap_or((0, Timestamp::MIN));
        let late = now.duration_since(at) >= due.every || at > now;
        head > last && (head - last >= due.rows || late || self.close)
    }
}

fn internal(message: &str) -> JobResult {
    JobResult::Fault(StoreError::new(StoreErrorKind::Internal, message))
}
