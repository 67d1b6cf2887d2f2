//! Checks of a pending request immediately before it is written.

use std::sync::Arc;

use toolgate_admission::ended::Ended;
use toolgate_admission::refused::Refused;
use toolgate_audit::CallId;

use super::{CalledTool, Pending};
use crate::arguments::ArgumentsToCheck;
use crate::link::Link;
use crate::link::waiting::Waiter;
use crate::pins::Reason;

impl Link {
    /// Checks a request again before it is written; if it is no longer allowed, answers the agent
    /// and returns how it ended.
    pub(in crate::link) async fn refused_on_recheck(&self, pending: &mut Pending) -> Option<Ended> {
        let recheck = pending.recheck.as_ref()?;
        let refused = match recheck.check_fresh().await {
            Err(refused) => refused,
            Ok(()) if pending.waited && self.server.is_retired() => {
                Refused::retired(recheck.call_id(), self.server.name())
            }
            Ok(()) => {
                let called = pending.called.as_mut()?;
                let reason = self.check_usable(&called.tool, &mut called.usable).err()?;
                self.refused_tool(recheck.call_id(), &called.tool, &reason)
            }
        };
        Some(self.refuse_pending(pending, refused))
    }

    /// Checks the arguments of a call, if its server wants that; if they do not match, answers the
    /// agent and returns how the call ended.
    pub(super) async fn refused_arguments(&self, pending: &mut Pending) -> Option<Ended> {
        let CalledTool { tool, grant, arguments, .. } = pending.called.as_ref()?;
        let arguments = arguments.as_ref()?;
        // The server itself answers a name that it does not list.
        let facts = self.facts_of(tool)?;
        let call = || ArgumentsToCheck {
            grant: Arc::clone(grant),
            server: self.server.name().into(),
            definition: facts.definition.clone(),
            arguments: Arc::clone(arguments),
        };
        let invalid = self.server.check_arguments(call).await.err()?;
        let call_id = pending.recheck.as_ref()?.call_id();
        let refused = Refused::invalid_arguments(call_id, &invalid.to_string());
        Some(self.refuse_pending(pending, refused))
    }

    /// Answers the agent of a request that is not sent, and returns how it ended.
    fn refuse_pending(&self, pending: &mut Pending, refused: Refused) -> Ended {
        let refused = if pending.written { refused.of_further_round() } else { refused };
        let Some(Waiter::Agent(waiting)) = self.waiting.take(pending.unanswered.number) else {
            return pending.taken_out();
        };
        waiting.reply.refuse(&refused);
        Ended::refused(&refused, pending.written)
    }

    /// The refusal of a call whose tool is quarantined.
    pub(crate) fn refused_tool(&self, call_id: CallId, tool: &str, reason: &Reason) -> Refused {
        Refused::quarantined(call_id, self.server.name(), tool, &reason.to_string())
    }
}
