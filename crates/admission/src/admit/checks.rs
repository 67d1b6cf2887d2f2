//! Checks that read the active access and write nothing.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate_policy::{Effect, UNUSED};

use super::Admission;
use crate::access::{Access, Acting, ActivePolicy, Grant};
use crate::call_context::CallContext;
use crate::delegation::Delegations;
use crate::start_denied::StartDenied;

/// `via` of calls of `toolgate tool --as`.
const CLI: &str = "cli";

impl Admission {
    /// The grant of a request with this token, or without one.
    pub fn caller(&self, token: Option<&str>) -> Option<Arc<Grant>> {
        let now = self.clock.now();
        let access = self.access.load();
        let known = access.caller(token, now);
        let grant = known.or_else(|| self.delegated(&access, token?, now))?;
        if let Some(id) = grant.id.as_ref().filter(|_| grant.is_new_use(now)) {
            self.store.touch(Arc::clone(id), now);
        }
        Some(grant)
    }

    /// The grant of a delegation, as it is now.
    fn delegated(&self, access: &Access, token: &str, now: Timestamp) -> Option<Arc<Grant>> {
        let delegation = self.delegations.find(token, now)?;
        let grant = access.of_label(&delegation.grant).filter(|grant| !grant.has_expired(now))?;
        let acting = Acting { person: delegation.person, via: CLI };
        Some(Arc::new(grant.with_acting(acting)))
    }

    /// The grant of this label, for a person who calls with its rights; `None` if it has ended.
    pub fn acting(&self, label: &str, acting: Acting) -> Option<Arc<Grant>> {
        let (access, now) = (self.access.load(), self.clock.now());
        let grant = access.of_label(label).filter(|grant| !grant.has_expired(now))?;
        Some(Arc::new(grant.with_acting(acting)))
    }

    /// Persons who call with the rights of a grant.
    pub fn delegations(&self) -> &Delegations {
        &self.delegations
    }

    /// The grant of this label as it is now.
    pub fn current(&self, label: &str) -> Option<Arc<Grant>> {
        self.access.load().of_label(label).cloned()
    }

    /// Whether the token with which this grant was looked up is still valid.
    pub fn is_valid(&self, held: &Grant) -> bool {
        let (access, now) = (self.access.load(), self.clock.now());
        let current = access.current(held);
        current.is_some_and(|grant| grant.token == held.token && !grant.has_expired(now))
    }

    /// Whether a subscription that was admitted earlier would be admitted now.
    pub fn may_subscribe(&self, held: &Grant, server: &str, uri: &str) -> bool {
        let access = self.access.load();
        access.frozen.stops(&held.label, server).is_none()
            && self.may_see_updates(held, server, uri)
    }

    /// Whether the current policy of this grant allows updates of a resource.
    pub fn may_see_updates(&self, held: &Grant, server: &str, uri: &str) -> bool {
        let access = self.access.load();
        let allows = |active: &Arc<ActivePolicy>| {
            active.policy.decide_resource(uri, self.clock.now()).effect == Effect::Allow
        };
        let may =
            |grant: &Grant| grant.may_reach(server) && grant.policy.as_ref().is_some_and(allows);
        access.current(held).is_some_and(may)
    }

    /// Why the agent's answer to a request of a server must not be sent: something is frozen, or
    /// the server is no longer within the reach of the grant.
    pub fn answer_denied(&self, held: &Grant, server: &str) -> Option<String> {
        let access = self.access.load();
        let out_of_reach = || {
            let reaches = access.current(held).is_some_and(|grant| grant.may_reach(server));
            (!reaches).then(|| "the agent may not use this server any more".to_owned())
        };
        access.frozen.stops(&held.label, server).or_else(out_of_reach)
    }

    /// Why no process of a server may be started for the current state of this grant.
    pub fn start_denied(&self, held: &Grant, server: &str) -> Option<StartDenied> {
        let access = self.access.load();
        if let Some(what) = access.frozen.stops(&held.label, server) {
            return Some(StartDenied::Frozen(what));
        }
        let may_call = match access.of_label(&held.label) {
            _ if held.is_trial => true,
            Some(current) => current.may_call(server, self.clock.now()),
            // Without a store nothing can change.
            None => access.generation.is_none() && held.may_call(server, self.clock.now()),
        };
        (!may_call).then_some(StartDenied::NothingAllowed)
    }

    /// Whether the policy refuses the name, or the grant or the server is frozen.
    pub fn refuses_name(&self, context: &CallContext) -> bool {
        let (label, server) = (&context.sender.grant.label, &context.server);
        let verdict = context.verdict_on_name(self.clock.now());
        self.access.load().frozen.stops(label, server).is_some()
            || matches!(verdict.effect, Effect::Deny | Effect::Hide)
    }

    /// Whether grant, reach, freezes and policy would admit a call now, as far as that is known
    /// without counters. Nothing is counted or recorded, and the call still needs a permit.
    pub fn would_admit(&self, context: &Arc<CallContext>) -> bool {
        let access = self.access();
        let context = context.under(&access);
        let verdict = context.decide(Some(&context.arguments), &UNUSED, self.now());
        context.frozen(&access).is_none()
            && context.is_within(&context.sender.grant)
            && matches!(verdict.effect, Effect::Allow | Effect::Hold)
    }
}
