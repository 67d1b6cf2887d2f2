//! Refusals before a call reaches the store's decision, and their rows.

use std::sync::Arc;

use toolgate_audit::{Draft, RowKind, record_arguments};
use toolgate_policy::Effect;

use super::{Admission, ArgumentRecording};
use crate::call_context::{CallContext, CallSubject, Sender};
use crate::refused::Refused;
use crate::store_timeout::written_in_time;
use crate::task_book::MAX_OPEN;

impl Admission {
    /// Refuses and records a call of a name that does not exist. If the policy refuses the name,
    /// the answer is the policy's, so that it does not reveal what exists.
    pub async fn unknown(&self, context: CallContext, shown: &str) -> Refused {
        let call_id = context.call_id;
        let verdict = context.verdict_on_name(self.clock.now());
        let refused = match verdict.effect {
            Effect::Deny | Effect::Hide => Refused::by_policy(call_id, &verdict),
            Effect::Allow | Effect::Hold => match context.subject {
                CallSubject::Prompt(_) => Refused::unknown_prompt(call_id, shown),
                _ => Refused::unknown_tool(call_id, shown),
            },
        };
        let refused = match self.record_denial(&context, &refused).await {
            Ok(()) => refused,
            Err(not_recorded) => not_recorded,
        };
        self.metrics.of(&context.server).refused(&refused);
        refused
    }

    /// Refuses and records a call that could create a task, because the grant has too many open
    /// ones. The policy decides the name first.
    pub async fn too_many_tasks(&self, context: &CallContext) -> Refused {
        let refused = Refused::too_many_tasks(context.call_id, MAX_OPEN);
        match self.unroutable(context, refused.code(), refused.row_message()).await {
            Ok(()) => refused,
            Err(other) => other,
        }
    }

    /// Records the refusal of a call whose tool is quarantined. The policy decides the name first.
    pub async fn quarantined(&self, context: &CallContext, refused: Refused) -> Refused {
        match self.unroutable(context, refused.code(), refused.row_message()).await {
            Ok(()) => refused,
            Err(other) => other,
        }
    }

    /// Refuses and records a held call that can no longer be routed.
    pub async fn no_longer_routable(
        &self,
        context: &CallContext,
        code: &'static str,
        text: &str,
    ) -> Refused {
        match self.unroutable(context, code, text).await {
            Ok(()) => Refused::unroutable(context.call_id, code, text),
            Err(other) => other,
        }
    }

    /// Records that a call cannot be routed, for the reason given. The policy decides the name
    /// first, so that the answer does not reveal what exists.
    pub async fn unroutable(
        &self,
        context: &CallContext,
        code: &'static str,
        text: &str,
    ) -> Result<(), Refused> {
        let refused = Refused::unroutable(context.call_id, code, text);
        let recorded = self.record_unroutable(context, &refused).await;
        let answered = recorded.as_ref().err().unwrap_or(&refused);
        self.metrics.of(&context.server).refused(answered);
        recorded
    }

    async fn record_unroutable(
        &self,
        context: &CallContext,
        refused: &Refused,
    ) -> Result<(), Refused> {
        let verdict = context.verdict_on_name(self.clock.now());
        if matches!(verdict.effect, Effect::Deny | Effect::Hide) {
            let refused = Refused::by_policy(context.call_id, &verdict);
            self.record_denial(context, &refused).await?;
            return Err(refused);
        }
        self.record_denial(context, refused).await
    }

    pub(super) async fn record_denial(
        &self,
        context: &CallContext,
        refused: &Refused,
    ) -> Result<(), Refused> {
        let mut draft = self.denial_draft(context).await?;
        draft.kind = RowKind::Denied;
        draft.error_code = Some(refused.code().into());
        draft.rule = refused.rule().cloned();
        draft.decision = refused.decision();
        draft.approval_id = refused.approval_id().cloned();
        draft.message = Some(refused.row_message().into());
        let _slot = context.sender.grant.slots.take().await;
        let written = written_in_time(self.store.deny(draft)).await;
        written.map_err(|error| Refused::not_audited(context.call_id, &error.to_string()))
    }
}

/// The row of a request before it is decided.
pub(super) fn draft(recording: &ArgumentRecording, context: &CallContext) -> Draft {
    let Sender { grant, agent_session, client, via, person } = &context.sender;
    let active = grant.policy.as_ref();
    let paths = active.map_or(&[][..], |policy| &policy.paths);
    let arguments = record_arguments(recording.mode, &context.arguments, paths, &recording.secret);
    let (name, class) = context.subject.name();
    Draft {
        call_id: Some(context.call_id),
        method: Some(Arc::clone(&context.method)),
        grant: Some(Arc::clone(&grant.label)),
        identity: grant.identity.clone(),
        agent_session: Some(Arc::clone(agent_session)),
        client: client.clone(),
        via: Some(Arc::clone(via)),
        person: person.clone(),
        server: Some(Arc::clone(&context.server)),
        session_id: context.session.as_ref().map(|session| Arc::clone(&session.id)),
        tool: (!matches!(context.subject, CallSubject::Method(_))).then(|| Arc::clone(name)),
        fingerprint: context.fingerprint,
        risk: class.map(|class| class.as_str().into()),
        policy: active.map(|policy| Arc::clone(&policy.name)),
        policy_version: active.and_then(|policy| policy.version),
        policy_hash: active.and_then(|policy| policy.hash),
        argument_keys: arguments.keys,
        arguments: arguments.values,
        ..Draft::new(RowKind::Intent, context.began)
    }
}
