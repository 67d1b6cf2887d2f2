//! One transaction: the jobs of a group, one after the other, on one chain.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};
use toolgate_audit::{
    CallId, Checkpoint, Coalesced, Coalescer, CounterChange, Decision, Draft, Effect, Kind,
    Outcome, Row, Signer, cut,
};
use toolgate_policy::{
    self as policy, Amount, Claim, Counted, Ownership, Reservation, Take, Unavailable, Usage,
    Verdict,
};

use super::{Due, Finish, Job, writer::Memory};
use crate::{
    Asking, Change, ChangeError, Ending, Fault, FaultKind, Leg, Settled,
    backend::{Abandoned, Changed, GiveBack, State, Transaction},
};

/// How long a call waits for its next leg.
const LEG: SignedDuration = SignedDuration::from_mins(10);
/// How often what can no longer count is forgotten, and dead processes are looked for.
const SWEEP: SignedDuration = SignedDuration::from_secs(60);
/// The mark may lag this much: what counters hold carries its own time, so that a step back
/// refills nothing in between either.
const MARK: SignedDuration = SignedDuration::from_secs(1);

pub(super) struct Group<'a> {
    transaction: &'a mut dyn Transaction,
    memory: &'a mut Memory,
    state: State,
    may_admit: Result<(), Fault>,
    close: bool,
}

/// What became of a job, once the transaction is committed.
pub(super) enum Done {
    Admitted { call_id: CallId, intent: Box<Draft>, seq: u64, verdict: Box<Verdict> },
    NotWaiting,
    Refused(Box<Verdict>),
    Held(Box<Verdict>),
    Stale,
    Settled(Settled),
    Written(u64),
    Changed(Result<u64, ChangeError>),
    Fault(Fault),
    Nothing,
}

impl<'a> Group<'a> {
    pub(super) fn begin(
        transaction: &'a mut dyn Transaction,
        memory: &'a mut Memory,
    ) -> Result<Self, Fault> {
        let state = transaction.state()?;
        let may_admit = transaction.may_admit();
        if memory.generation != state.generation && memory.now > state.mark {
            // Somebody may have accepted an earlier clock; what counters hold carries its own time.
            memory.now = state.mark;
        }
        memory.generation = state.generation;
        memory.now = memory.now.max(state.mark);
        Ok(Self { transaction, memory, state, may_admit, close: false })
    }

    pub(super) fn run(&mut self, job: &mut Job) -> Result<Done, Fault> {
        match job {
            Job::Admit { asking, .. } => self.admit(asking),
            Job::Finish(finish) => self.finish(finish),
            Job::Deny(draft, _) => self.deny((**draft).clone()),
            Job::Record(draft, _) => {
                self.time(draft.time);
                Ok(Done::Written(self.append((**draft).clone())?.seq))
            }
            Job::Change(change, _) => {
                let (change, draft) = &**change;
                let now = match change {
                    Change::AcceptClock => self.accept_clock(draft.time),
                    _ => self.time(draft.time),
                };
                Ok(Done::Changed(match self.transaction.change(change, now)? {
                    Changed::Made => {
                        self.state.generation += u64::from(change.is_setup());
                        self.memory.generation = self.state.generation;
                        self.append(draft.clone())?;
                        Ok(self.state.generation)
                    }
                    Changed::NameTaken(name) => Err(ChangeError::NameTaken(name)),
                    Changed::Unknown(name) => Err(ChangeError::Unknown(name)),
                }))
            }
            Job::Continue(call, task, until) => {
                self.transaction.continue_as_task(*call, task, *until)?;
                Ok(Done::Nothing)
            }
            Job::EndTask(ended) => {
                let (task, ending) = &**ended;
                for call in self.transaction.left_as_task(task)? {
                    let intent = Draft { call_id: Some(call.call_id), ..call.intent };
                    self.settle(&intent, ending.clone())?;
                }
                Ok(Done::Nothing)
            }
            Job::Touch(grant, now) => {
                // Every call touches its grant; once a second is enough.
                let now = self.time(*now);
                self.memory.touched.insert(Arc::clone(grant), now);
                Ok(Done::Nothing)
            }
            Job::Tick(now) => self.tick(*now),
            Job::Close(now, ..) => {
                let now = self.time(*now);
                let rest = self.memory.coalescer.flush(now);
                self.memory.owed.extend(rest);
                self.close = true;
                self.write_touched()?;
                Ok(Done::Nothing)
            }
        }
    }

    // === a call ===

    fn admit(&mut self, asking: &Asking) -> Result<Done, Fault> {
        if let Err(fault) = &self.may_admit {
            return Ok(Done::Fault(fault.clone()));
        }
        if asking.generation.is_some_and(|known| known != self.state.generation) {
            return Ok(Done::Stale);
        }
        let Some(call_id) = asking.draft.call_id else {
            return Ok(internal("a call without an id"));
        };
        let now = self.time(asking.draft.time);
        let usage: &dyn Usage = self.transaction;
        let decided = catch_unwind(AssertUnwindSafe(|| match asking.leg {
            Leg::First => (asking.decide)(usage, now),
            // It was counted when it began; ids still belong to their owners.
            Leg::Next => {
                let owns = |claim: &Claim<'_>| usage.owns(claim);
                let exceptions = usage.exceptions();
                (asking.decide)(&Counted { owns: &owns, exceptions }, now)
            }
        }));
        let Ok(verdict) = decided else { return Ok(internal("the decision failed")) };
        let verdict = Box::new(verdict);
        match verdict.effect {
            _ if asking.leg == Leg::Next && verdict.effect <= policy::Effect::Hold => {
                self.resume(asking, call_id, verdict)
            }
            policy::Effect::Hold => Ok(Done::Held(verdict)),
            policy::Effect::Deny | policy::Effect::Hide => {
                self.deny(refusal(&asking.draft, &verdict))?;
                Ok(Done::Refused(verdict))
            }
            policy::Effect::Allow => self.take(asking, call_id, verdict, now),
        }
    }

    fn take(
        &mut self,
        asking: &Asking,
        call_id: CallId,
        verdict: Box<Verdict>,
        now: Timestamp,
    ) -> Result<Done, Fault> {
        let mut intent = Draft { kind: Kind::Intent, ..asking.draft.clone() };
        (intent.decision, intent.rule) = match &verdict.shadow {
            None => (Some(Decision::Allow), verdict.rule.clone()),
            Some(would) => (Some(shadow(would.effect)), Some(would.rule.clone())),
        };
        intent.rule = intent.rule.map(|rule| cut(&rule).unwrap_or(rule));
        let mut fitting: Vec<Reservation> = Vec::with_capacity(verdict.reservations.len());
        for reservation in &verdict.reservations {
            match fits(self.transaction, reservation, now) {
                Ok(change) => {
                    intent.counters.extend(change);
                    fitting.push(reservation.clone());
                }
                // In shadow: taken if it fits, and never refused.
                Err(Full) if !reservation.enforced => {}
                Err(Full) => return Ok(internal("a counter was full after the decision")),
            }
        }
        let Row { seq, draft, .. } = self.append(intent)?;
        self.transaction.open(call_id, seq, &fitting, now)?;
        Ok(Done::Admitted { call_id, intent: Box::new(draft), seq, verdict })
    }

    /// The intent is written already, and everything is taken.
    fn resume(
        &mut self,
        asking: &Asking,
        call_id: CallId,
        verdict: Box<Verdict>,
    ) -> Result<Done, Fault> {
        let Some(seq) = self.transaction.resume(call_id)? else { return Ok(Done::NotWaiting) };
        let intent = Box::new(asking.draft.clone());
        Ok(Done::Admitted { call_id, intent, seq, verdict })
    }

    pub(super) fn finish(&mut self, finish: &Finish) -> Result<Done, Fault> {
        let dropped = || Ending::new(Outcome::Unknown, Effect::Unknown, self.memory.now);
        let ending = finish.ending.clone().unwrap_or_else(dropped);
        self.settle(&finish.intent, ending).map(Done::Settled)
    }

    fn settle(&mut self, intent: &Draft, ending: Ending) -> Result<Settled, Fault> {
        let now = self.time(ending.time);
        let Some(call_id) = intent.call_id else { return Ok(Settled::default()) };
        let not_started = ending.effect == Effect::NotStarted && !ending.stays_counted;
        let back = if not_started { GiveBack::All } else { GiveBack::Nothing };
        match ending.outcome {
            Outcome::InputRequired => self.transaction.park(call_id, now)?,
            _ => self.transaction.settle(call_id, back)?,
        }
        let grant = intent.grant.as_deref().unwrap_or_default();
        let mut settled = Settled::default();
        for yielded in ending.ownership.yields {
            let identity = intent.identity.as_deref();
            match self.transaction.own(&yielded, grant, identity, now)? {
                Ownership::Recorded => {}
                Ownership::Conflict => settled.conflicts.push(yielded),
            }
        }
        for ended in &ending.ownership.ends {
            self.transaction.end(ended)?;
        }
        let mut row = Draft::new(Kind::Outcome, ending.time);
        row.call_id = intent.call_id;
        row.grant.clone_from(&intent.grant);
        row.server.clone_from(&intent.server);
        row.session_id.clone_from(&intent.session_id);
        row.tool.clone_from(&intent.tool);
        (row.outcome, row.effect) = (Some(ending.outcome), Some(ending.effect));
        (row.upstream_ms, row.total_ms) = (ending.upstream_ms, ending.total_ms);
        row.error_code = ending.error_code;
        row.message = match (ending.message, settled.conflicts.first()) {
            (message, None) => message,
            (message, Some(conflict)) => {
                let said = message.as_deref().map(|text| format!("{text}; ")).unwrap_or_default();
                let kind = &conflict.kind;
                Some(format!("{said}conflict: this `{kind}` belongs to another grant").into())
            }
        };
        self.append(row)?;
        Ok(settled)
    }

    fn deny(&mut self, draft: Draft) -> Result<Done, Fault> {
        let now = self.time(draft.time);
        self.end_minute(now);
        match self.memory.coalescer.denied(Draft { kind: Kind::Denied, ..draft }) {
            Coalesced::Row(draft) => self.append(*draft).map(|row| Done::Written(row.seq)),
            Coalesced::Counted => Ok(Done::Nothing),
        }
    }

    // === time ===

    fn tick(&mut self, now: Timestamp) -> Result<Done, Fault> {
        let now = self.time(now);
        self.end_minute(now);
        self.write_touched()?;
        self.transaction.note()?;
        let then = now.checked_sub(LEG).unwrap_or(Timestamp::MIN);
        for call in self.transaction.waiting_since(then)? {
            self.give_up(&call, Outcome::Cancelled, "the call was not continued in time")?;
        }
        if now.duration_since(self.memory.swept) >= SWEEP {
            self.memory.swept = now;
            self.transaction.prune(now)?;
            self.recover()?;
        }
        Ok(Done::Nothing)
    }

    /// Ends calls whose process has ended; answers how many there were.
    pub(super) fn recover(&mut self) -> Result<usize, Fault> {
        let abandoned = self.transaction.abandoned(self.memory.now)?;
        for call in &abandoned {
            self.give_up(call, Outcome::Unknown, "toolgate ended before the call did")?;
        }
        Ok(abandoned.len())
    }

    fn give_up(&mut self, call: &Abandoned, outcome: Outcome, why: &str) -> Result<(), Fault> {
        let mut ending = Ending::new(outcome, Effect::Unknown, self.memory.now);
        ending.message = Some(why.into());
        let intent = Draft { call_id: Some(call.call_id), ..call.intent.clone() };
        self.settle(&intent, ending).map(drop)
    }

    /// If the commit fails, when a grant was last used is a second older than it could be.
    fn write_touched(&mut self) -> Result<(), Fault> {
        for (grant, now) in std::mem::take(&mut self.memory.touched) {
            self.transaction.touch(&grant, now)?;
        }
        Ok(())
    }

    fn end_minute(&mut self, now: Timestamp) {
        let due = self.memory.coalescer.due(now);
        self.memory.owed.extend(due);
    }

    /// From now on it is this time, be it earlier.
    fn accept_clock(&mut self, now: Timestamp) -> Timestamp {
        let rest = self.memory.coalescer.flush(now);
        self.memory.owed.extend(rest);
        self.memory.coalescer = Coalescer::default();
        (self.memory.now, self.memory.swept, self.state.mark) = (now, now, now);
        self.time(now)
    }

    /// The time that counts: never earlier than any before.
    fn time(&mut self, given: Timestamp) -> Timestamp {
        let given = Timestamp::from_microsecond(given.as_microsecond()).unwrap_or(given);
        self.memory.now = self.memory.now.max(given);
        self.memory.now
    }

    // === the chain ===

    fn append(&mut self, draft: Draft) -> Result<Row, Fault> {
        let head = &mut self.state.head;
        let row = if self.transaction.forgets_rows() {
            // Nobody will ever look at the hash.
            head.seq += 1;
            Row { seq: head.seq, draft, hash: head.hash }
        } else {
            head.seal(draft)
        };
        self.transaction.append(&row)?;
        Ok(row)
    }

    /// Writes what belongs to every group; answers the generation, and what was signed.
    pub(super) fn end(
        mut self,
        signer: Option<&Signer>,
        due: Due,
    ) -> Result<(u64, Option<Checkpoint>), Fault> {
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
        Ok((self.state.generation, checkpoint))
    }

    fn is_checkpoint_due(&self, due: Due, now: Timestamp) -> bool {
        let head = self.state.head.seq;
        let (last, at) = self.state.checkpoint.unwrap_or((0, Timestamp::MIN));
        let late = now.duration_since(at) >= due.every || at > now;
        head > last && (head - last >= due.rows || late || self.close)
    }
}

fn internal(message: &str) -> Done {
    Done::Fault(Fault::new(FaultKind::Internal, message))
}

/// There is no room, or nobody knows whether there is.
struct Full;

impl From<Unavailable> for Full {
    fn from(_: Unavailable) -> Self {
        Full
    }
}

/// What taking the reservation changes, if there is room for it.
fn fits(
    usage: &(impl Usage + ?Sized),
    reservation: &Reservation,
    now: Timestamp,
) -> Result<Option<CounterChange>, Full> {
    let key = &reservation.key;
    let (before, amount, max) = match reservation.take {
        Take::Calendar { period, amount, max } => (usage.used(key, period)?, amount, max),
        Take::Sliding { window, amount, max } => {
            let taken = usage.taken(key, window.before(now))?;
            let sum = taken.iter().try_fold(Amount::ZERO, |sum, taken| sum.plus(taken.amount));
            (sum.ok_or(Full)?, amount, max)
        }
        Take::InFlight { max } => {
            (Amount::whole(usage.in_flight(key)?), Amount::ONE, Amount::whole(max))
        }
        Take::Seen { .. } => return Ok(None),
    };
    let after = before.plus(amount).filter(|after| *after <= max).ok_or(Full)?;
    Ok(Some(CounterChange { counter: reservation.counter.as_str().into(), before, after }))
}

/// The row of a call that the policy refused.
fn refusal(asked: &Draft, verdict: &Verdict) -> Draft {
    let hide = verdict.effect == policy::Effect::Hide;
    let mut draft = Draft { kind: Kind::Denied, ..asked.clone() };
    draft.decision = Some(if hide { Decision::Hide } else { Decision::Deny });
    draft.error_code = verdict.refusal.map(|refusal| refusal.as_str().into());
    draft.rule = verdict.rule.as_ref().map(|rule| cut(rule).unwrap_or_else(|| Arc::clone(rule)));
    draft.message = Some(cut(&verdict.message).unwrap_or_else(|| verdict.message.as_str().into()));
    draft.cut_arguments()
}

fn shadow(effect: policy::Effect) -> Decision {
    match effect {
        policy::Effect::Allow => Decision::Allow,
        policy::Effect::Hold => Decision::ShadowHold,
        policy::Effect::Deny | policy::Effect::Hide => Decision::ShadowDeny,
    }
}
