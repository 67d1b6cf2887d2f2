//! Calls as the gateway makes them: a policy, an agent, and a clock that the test controls.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use jiff::Timestamp;
use toolgate_audit::{CallId, Draft, Effect, Outcome, RowKind};
use toolgate_policy::{
    Binding, Call, Class, Identity, Known, Policy, Verdict, argument_digest, decide,
};

use super::wait;
use crate::{
    AdmitOutcome, AdmitRequest, Admitted, Completion, HoldRequest, NotAudited, RoundKind, Store,
};

/// One tool for each kind of counting.
pub const POLICY: &str = r#"
version: "1"
default: deny
tools:
  close: { limits: [{ counter: close_rate, window: minute, max: 30 }] }
  slide: { limits: [{ counter: slide_rate, window: minute, max: 30, algorithm: sliding }] }
  spend: { limits: [{ counter: spend, window: day, max: 100.5, increment_from: args.amount }] }
  pile: { limits: [{ counter: pile, window: day, max: 100000000000000000000, increment_from: args.amount }] }
  run: { concurrency: { max: 3 } }
  both: { limits: [{ counter: a, window: minute, max: 5 }, { counter: b, window: hour, max: 7, scope: global }] }
  once: { unless_seen_within: 5m }
  open: { yields: { job: result.id } }
  end:
    require: [{ conditions: [{ path: args.id, op: owned, value: job }] }]
    ends: { job: args.id }
  ask: { approve: {} }
  two: { approve: { people: 2 } }
  paid: { approve: {}, limits: [{ counter: paid, window: minute, max: 1 }] }
  again: { approve: {}, unless_seen_within: 5m }
  never: { action: deny }
  soft: { mode: shadow, limits: [{ counter: soft_rate, window: minute, max: 2 }] }
  "sof?": {}
  many: { limits: [{ counter: many, window: day, max: 1000000000 }] }
"#;

/// An instant, in seconds.
pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Numbers the calls of one process.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A caller.
#[derive(Clone, Debug)]
pub struct TestAgent {
    store: Arc<dyn Store>,
    policy: Arc<Policy>,
    grant: Arc<str>,
}

impl TestAgent {
    /// An agent under [`POLICY`].
    pub fn new(store: &Arc<dyn Store>, grant: &str) -> Self {
        let policy = Policy::load("suite", POLICY, &Known::default()).policy.unwrap();
        Self { store: Arc::clone(store), policy: Arc::new(policy), grant: grant.into() }
    }

    /// The same agent with another grant.
    #[must_use]
    pub fn with_grant(&self, grant: &str) -> Self {
        Self { grant: grant.into(), ..self.clone() }
    }

    /// The request that the gateway would make.
    pub fn request(&self, tool: &str, arguments: &str, now: Timestamp) -> AdmitRequest {
        let mut draft = Draft::new(RowKind::Intent, now);
        let number = (NEXT.fetch_add(1, Ordering::Relaxed) | u64::from(std::process::id()) << 32)
            .to_be_bytes();
        let mut random = [0; 10];
        for (to, from) in random.iter_mut().zip(self.grant.bytes().rev().take(2).chain(number)) {
            *to = from;
        }
        let millisecond = u64::try_from(now.as_millisecond()).unwrap_or_default();
        draft.call_id = Some(CallId::new(millisecond, random));
        draft.grant = Some(Arc::clone(&self.grant));
        draft.identity = Some("desk".into());
        draft.server = Some("work".into());
        draft.tool = Some(tool.into());
        draft.policy = Some("suite".into());
        let agent = self.clone();
        let (tool, arguments) = (tool.to_owned(), arguments.to_owned());
        let hold = Box::new(agent.hold(&tool, &arguments, number));
        let decide = move |usage: &dyn toolgate_policy::Usage, approval, now| {
            let call = Call { approval, ..agent.call(&tool, &arguments) };
            decide(&agent.policy, &call, usage, now)
        };
        AdmitRequest {
            draft,
            round: RoundKind::First,
            generation: None,
            decide: Box::new(decide),
            hold: Some(hold),
        }
    }

    fn hold(&self, tool: &str, arguments: &str, number: [u8; 8]) -> HoldRequest {
        let digest = argument_digest(arguments).unwrap();
        let binding = Binding {
            grant: &self.grant,
            server: "work",
            session: None,
            tool,
            fingerprint: None,
            arguments: digest,
            policy_hash: self.policy.hash(),
        };
        HoldRequest {
            id: format!("apr_{}", u64::from_be_bytes(number)).into(),
            binding: binding.digest(),
            digest,
            members: "{}".into(),
            arguments: arguments.into(),
            is_valid: Box::new(|_, _| true),
        }
    }

    fn call<'a>(&'a self, tool: &'a str, arguments: &'a str) -> Call<'a> {
        Call {
            grant: &self.grant,
            identity: Some(Identity { name: "desk", groups: &[] }),
            ..Call::new("work", tool, Class::Other, arguments)
        }
    }

    /// Requests admission.
    pub fn ask(
        &self,
        tool: &str,
        arguments: &str,
        now: Timestamp,
    ) -> Result<AdmitOutcome, NotAudited> {
        wait(self.store.admit(self.request(tool, arguments, now)))
    }

    /// Requests admission; `Err` with the verdict if the call was not admitted.
    pub fn admit(
        &self,
        tool: &str,
        arguments: &str,
        now: Timestamp,
    ) -> Result<Admitted, Box<Verdict>> {
        match self.ask(tool, arguments, now).unwrap() {
            AdmitOutcome::Admitted(admitted) => Ok(admitted),
            AdmitOutcome::Refused(verdict) | AdmitOutcome::Held(verdict, _) => Err(verdict),
            other => panic!("{other:?}"),
        }
    }

    /// Requests admission and records success at once. Returns whether the call was admitted.
    pub fn call_through(&self, tool: &str, arguments: &str, now: Timestamp) -> bool {
        let admitted = self.admit(tool, arguments, now);
        admitted.is_ok_and(|admitted| {
            end(admitted, Outcome::Ok, Effect::Done, now);
            true
        })
    }

    /// What the policy derives from a raw result.
    pub fn outcome(&self, tool: &str, arguments: &str, result: &str) -> toolgate_policy::Outcome {
        self.policy.outcome(&self.call(tool, arguments), result)
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }
}

/// Ends a call and waits until the outcome is recorded.
pub(super) fn end(admitted: Admitted, outcome: Outcome, effect: Effect, now: Timestamp) {
    let (permit, ticket) = admitted.split();
    drop(permit);
    wait(ticket.finish_written(Completion::new(outcome, effect, now))).unwrap();
}
