//! The part of a decision that needs no counters: the draft of the row, and everything that the
//! policy derives from the request alone.
//!
//! Invariant: work that grows with the arguments is done here, never inside the store's transaction.
//! For large arguments it runs on its own thread, in turn with other grants.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate_audit::{ArgumentMode, Draft, record_arguments};
use toolgate_policy::{
    Approval, Binding, Call, Digest, Examined, Exception, Outcome, UNUSED, Usage, Verdict,
    argument_digest, conclude, examine, may_hold,
};

use super::denials::draft;
use super::{Admission, ArgumentRecording};
use crate::access::Access;
use crate::call_context::{CallContext, CallSubject};
use crate::fair_queue::NotRun;
use crate::refused::Refused;

/// Arguments of more bytes than this are examined off the runtime's threads.
const LARGE: usize = 32 * 1024;

/// The same for results of calls that assign or end owned ids.
const LARGE_RESULT: usize = 256 * 1024;

/// A request, as far as it can be decided without counters.
pub(super) struct Prepared {
    pub(super) draft: Draft,
    pub(super) examined: ExaminedCall,
    /// How it is held, if the policy may hold it.
    pub(super) hold: Option<HoldParts>,
    /// Standing exceptions whose arguments it has.
    pub(super) exceptions: Vec<Arc<Exception>>,
}

/// What an approval of the call would be bound to.
pub(super) struct HoldParts {
    pub(super) binding: Digest,
    pub(super) digest: Digest,
    pub(super) members: Arc<str>,
    pub(super) arguments: Arc<str>,
}

/// What the policy derives from a request alone.
pub(super) enum ExaminedCall {
    /// Arguments and counters decide.
    Tool(Box<Examined>),
    /// The name decides; whether the document was in shadow then.
    Name(Box<Verdict>, bool),
}

impl Admission {
    /// Examines a request as far as that is possible without the store.
    pub(super) async fn prepare(
        &self,
        context: &Arc<CallContext>,
        access: &Arc<Access>,
    ) -> Result<Prepared, Refused> {
        let now = self.now();
        let recording = self.recording.load_full();
        if context.arguments.len() <= LARGE {
            return Ok(context.prepare(&recording, access, now));
        }
        let (held, access) = (Arc::clone(context), Arc::clone(access));
        let prepare = move || held.prepare(&recording, &access, now);
        let prepared = self.large_calls.run(&context.sender.grant.label, prepare).await;
        prepared.map_err(|why| Refused::not_audited(context.call_id, &why.to_string()))
    }

    /// The ids that the result of a call assigns or ends. A large result is read off the runtime's
    /// threads, in turn with other grants, unless too much of the grant waits there.
    pub async fn ownership_of(&self, context: &Arc<CallContext>, result: &str) -> Outcome {
        if result.len() <= LARGE_RESULT {
            return context.ownership(result);
        }
        let (held, text) = (Arc::clone(context), result.to_owned());
        let read = move || held.ownership(&text);
        match self.large_calls.run(&context.sender.grant.label, read).await {
            Ok(outcome) => outcome,
            Err(NotRun::QueueFull) => context.ownership(result),
            Err(NotRun::Panicked) => {
                tracing::error!("panic while reading a large result; its ids have no owner");
                Outcome::default()
            }
        }
    }

    /// The draft of the row about a request that is not sent.
    pub(super) async fn denial_draft(&self, context: &CallContext) -> Result<Draft, Refused> {
        let recording = self.recording.load_full();
        if context.arguments.len() <= LARGE {
            return Ok(draft(&recording, context));
        }
        let held = context.clone();
        let label = &context.sender.grant.label;
        let drafted = self.large_calls.run(label, move || draft(&recording, &held)).await;
        drafted.map_err(|why| Refused::not_audited(context.call_id, &why.to_string()))
    }
}

impl CallContext {
    fn prepare(&self, recording: &ArgumentRecording, access: &Access, now: Timestamp) -> Prepared {
        let (draft, examined) = (draft(recording, self), self.examine(now));
        let (hold, exceptions) = (self.hold_parts(recording), self.exceptions(access));
        Prepared { draft, examined, hold, exceptions }
    }

    /// The standing exceptions of the grant for calls with these arguments.
    fn exceptions(&self, access: &Access) -> Vec<Arc<Exception>> {
        let own = access.exceptions.get(&self.sender.grant.label).into_iter().flatten();
        let own = own.filter(|one| *one.exception.tool == **self.subject.name().0);
        let similar = own.filter(|one| one.kept.fits(&self.arguments));
        similar.map(|one| Arc::clone(&one.exception)).collect()
    }

    /// `None` if no rule may hold the call, or its arguments have no canonical form; then a call that
    /// is held after all is refused.
    fn hold_parts(&self, recording: &ArgumentRecording) -> Option<HoldParts> {
        let active = self.sender.grant.policy.as_ref()?;
        let CallSubject::Tool(tool, class) = &self.subject else { return None };
        if !may_hold(&active.policy, &self.call(tool, *class, None)) {
            return None;
        }
        let digest = argument_digest(&self.arguments).ok()?;
        let binding = Binding {
            grant: &self.sender.grant.label,
            server: &self.server,
            session: self.session.as_ref().map(|session| &*session.id),
            tool,
            fingerprint: self.fingerprint.map(|hash| hash.0),
            arguments: digest,
            policy_hash: active.policy.hash(),
        };
        let hashed = ArgumentMode::Hashed;
        let members = record_arguments(hashed, &self.arguments, &[], &recording.secret).values;
        Some(HoldParts {
            binding: binding.digest(),
            digest,
            members: members.unwrap_or_else(|| "{}".into()),
            arguments: self.arguments.as_str().into(),
        })
    }

    fn examine(&self, now: Timestamp) -> ExaminedCall {
        match (&self.sender.grant.policy, &self.subject) {
            (Some(active), CallSubject::Tool(tool, class)) => {
                let call = self.call(tool, *class, Some(&self.arguments));
                ExaminedCall::Tool(Box::new(examine(&active.policy, &call)))
            }
            (active, _) => {
                let shadow = active.as_ref().is_some_and(|it| it.policy.is_shadow(now));
                let verdict = self.decide(Some(&self.arguments), &UNUSED, now);
                ExaminedCall::Name(Box::new(verdict), shadow)
            }
        }
    }

    /// The verdict, given the counters.
    pub(super) fn conclude(
        &self,
        examined: &ExaminedCall,
        approval: Approval,
        usage: &dyn Usage,
        now: Timestamp,
    ) -> Verdict {
        match (&self.sender.grant.policy, &self.subject, examined) {
            (Some(active), CallSubject::Tool(tool, class), ExaminedCall::Tool(examined)) => {
                let call = Call { approval, ..self.call(tool, *class, Some(&self.arguments)) };
                conclude(&active.policy, &call, examined, usage, now)
            }
            (active, _, ExaminedCall::Name(verdict, shadow))
                if active.as_ref().is_some_and(|it| it.policy.is_shadow(now)) == *shadow =>
            {
                (**verdict).clone()
            }
            _ => self.decide_with(Some(&self.arguments), approval, usage, now),
        }
    }
}
