//! What is done of a decision before the store is asked: the draft of its row, and everything that
//! the policy makes of the request without knowing what was used.
//!
//! Invariant: what grows with the arguments is done here, never inside the store's transaction;
//! for large arguments on a thread of its own, in turn with other grants.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate_audit::Draft;
use toolgate_policy::{Examined, Outcome, UNUSED, Usage, Verdict, conclude, examine};

use super::{Admission, Wanted, What, draft};
use crate::refused::Refused;
use crate::turns::NoTurn;

/// Arguments of more bytes than this are looked at off the runtime's threads.
const LARGE: usize = 32 * 1024;

/// The same of results, of calls that give or end what somebody owns.
const LARGE_RESULT: usize = 256 * 1024;

/// A request, as far as it can be judged by itself.
pub(super) struct Judged {
    pub(super) draft: Draft,
    pub(super) so_far: SoFar,
}

/// What the policy makes of a request so far.
pub(super) enum SoFar {
    /// Arguments and usage decide.
    Examined(Box<Examined>),
    /// The name decides; whether the document was in shadow then.
    Named(Box<Verdict>, bool),
}

impl Admission {
    /// Judges a request as far as it can be without the store.
    pub(super) async fn judge(&self, wanted: &Arc<Wanted>) -> Result<Judged, Refused> {
        let now = self.now();
        let writing = self.writing.load_full();
        if wanted.arguments.len() <= LARGE {
            return Ok(Judged { draft: draft(&writing, wanted), so_far: wanted.judge(now) });
        }
        let held = Arc::clone(wanted);
        let judge = move || Judged { draft: draft(&writing, &held), so_far: held.judge(now) };
        let judged = self.turns.run(&wanted.sender.grant.label, judge).await;
        judged.map_err(|no| Refused::not_audited(wanted.call_id, no.why()))
    }

    /// What the result of a call gives or ends. A large one is read off the runtime's threads, in
    /// turn with other grants, as long as the grant has room for it there.
    pub async fn ownership_of(&self, wanted: &Arc<Wanted>, result: &str) -> Outcome {
        if result.len() <= LARGE_RESULT {
            return wanted.ownership(result);
        }
        let (held, text) = (Arc::clone(wanted), result.to_owned());
        let read = move || held.ownership(&text);
        let read = self.turns.run(&wanted.sender.grant.label, read).await;
        match read {
            Ok(outcome) => outcome,
            Err(NoTurn::TooMany) => wanted.ownership(result),
            Err(NoTurn::Failed) => {
                tracing::error!("a large result could not be read; what it gave has no owner");
                Outcome::default()
            }
        }
    }

    /// The draft of a row about a request that goes nowhere.
    pub(super) async fn draft_of(&self, wanted: &Wanted) -> Result<Draft, Refused> {
        let writing = self.writing.load_full();
        if wanted.arguments.len() <= LARGE {
            return Ok(draft(&writing, wanted));
        }
        let held = wanted.clone();
        let drafted = self.turns.run(&wanted.sender.grant.label, move || draft(&writing, &held));
        drafted.await.map_err(|no| Refused::not_audited(wanted.call_id, no.why()))
    }
}

impl Wanted {
    fn judge(&self, now: Timestamp) -> SoFar {
        match (&self.sender.grant.policy, &self.what) {
            (Some(in_force), What::Tool(tool, class)) => {
                let call = self.call(tool, *class, Some(&self.arguments));
                SoFar::Examined(Box::new(examine(&in_force.policy, &call)))
            }
            (in_force, _) => {
                let shadow = in_force.as_ref().is_some_and(|it| it.policy.is_shadow(now));
                let verdict = self.decide(Some(&self.arguments), &UNUSED, now);
                SoFar::Named(Box::new(verdict), shadow)
            }
        }
    }

    /// What the policy says, given what has been used.
    pub(super) fn verdict(&self, so_far: &SoFar, usage: &dyn Usage, now: Timestamp) -> Verdict {
        match (&self.sender.grant.policy, &self.what, so_far) {
            (Some(in_force), What::Tool(tool, class), SoFar::Examined(examined)) => {
                let call = self.call(tool, *class, Some(&self.arguments));
                conclude(&in_force.policy, &call, examined, usage, now)
            }
            (in_force, _, SoFar::Named(verdict, shadow))
                if in_force.as_ref().is_some_and(|it| it.policy.is_shadow(now)) == *shadow =>
            {
                (**verdict).clone()
            }
            _ => self.decide(Some(&self.arguments), usage, now),
        }
    }
}
