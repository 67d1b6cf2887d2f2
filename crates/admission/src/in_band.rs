//! In-band answers: the user of an agent answers a held call in the agent's own client.
//!
//! The client asks its user, and it could answer without them. So this is offered only if the rule
//! says `approvers: [requester]`, and the answer is recorded with `via: in-band`.
//!
//! Invariant: an answer belongs to the one approval that the question showed. The store accepts it
//! only while that approval is pending, and the approval admits only the call that it is bound to.
//! Invariant: the question shows all arguments that were hashed, or it is not asked.
//!
//! Start at [`ask`] and [`Admission::answer_in_band`].

use std::sync::Arc;

use serde_json::json;
use toolgate_audit::{Draft, RowKind};
use toolgate_policy::{draw, drawn_arguments};
use toolgate_store::{Answer, Change, StoredApproval};

use crate::access::IN_BAND;
use crate::admit::Admission;
use crate::holds::HeldCaller;
use crate::user_question::{UserAnswer, UserQuestion};

/// Most bytes of arguments in a question; people with more to read use the console or the CLI.
const MAX_SHOWN: usize = 16 * 1024;

/// What became of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// It is recorded; the call is decided again.
    Answered,
    /// It changed nothing, and the call waits on.
    Ignored,
    /// The user declined, but the approval was no longer pending. The call must not be sent now.
    DeclinedTooLate,
}

/// Asks the user of an agent, if only the requester may answer and the client can ask.
pub(crate) fn ask(approval: &StoredApproval, caller: &impl HeldCaller) -> Option<UserQuestion> {
    if !approval.question.asks_only_requester() {
        return None;
    }
    caller.ask_user(&question(approval)?)
}

/// The `params` of `elicitation/create`. `None` if the arguments are too long to be read.
fn question(approval: &StoredApproval) -> Option<String> {
    let call = &approval.call;
    let arguments = drawn_arguments(approval.arguments.as_deref()?);
    if arguments.len() > MAX_SHOWN {
        return None;
    }
    let mut lines = vec![
        "toolgate holds a call until you answer.".to_owned(),
        format!("Tool: {} of {}", one_line(&call.tool), one_line(&call.server)),
        format!("Risk class: {}", call.class),
        format!("Arguments: {arguments}"),
    ];
    lines.extend(call.session_id.as_ref().map(|id| format!("Session: {}", one_line(id))));
    lines.extend(approval.question.note.as_ref().map(|note| format!("Note: {note}")));
    lines.push("Accept sends exactly this call, once. Decline refuses it.".to_owned());
    let params = json!({
        "_meta": {"toolgate/approval": &*approval.id},
        "message": lines.join("\n"),
        "requestedSchema": {"type": "object", "properties": {}},
    });
    Some(params.to_string())
}

/// Text of an agent on one line, with hidden characters drawn.
fn one_line(text: &str) -> String {
    draw(text).replace(['\n', '\r', '\t'], " ")
}

impl Admission {
    /// Records what the user of an agent answered about this approval.
    pub(crate) async fn answer_in_band(
        &self,
        approval: &StoredApproval,
        answer: UserAnswer,
    ) -> Recorded {
        let approves = match answer {
            UserAnswer::Nothing => return Recorded::Ignored,
            UserAnswer::Accept => true,
            UserAnswer::Decline => false,
        };
        if !approval.question.asks_only_requester() {
            return Recorded::Ignored;
        }
        let now = self.now();
        let identity = approval.call.identity.as_ref();
        let given = Answer {
            person: Arc::clone(identity.unwrap_or(&approval.call.grant)),
            approves,
            at: now,
            reason: None,
            via: IN_BAND.into(),
        };
        let row = Draft {
            person: identity.cloned(),
            via: Some(IN_BAND.into()),
            ..Draft::new(RowKind::Approval, now)
        };
        let id = Arc::clone(&approval.id);
        let change = Change::Answer { approval: Arc::clone(&id), answer: Box::new(given) };
        match self.store().change(change, row).await {
            Ok(_) => {
                self.holds().answered(now.duration_since(approval.created).unsigned_abs());
                self.holds().changed(&id);
                Recorded::Answered
            }
            Err(error) => {
                tracing::warn!(approval = &*id, %error, "in-band answer not recorded");
                if approves { Recorded::Ignored } else { Recorded::DeclinedTooLate }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_agents_stays_on_its_line() {
        assert_eq!(one_line("{\n\t\"a\": \"\u{202e}\"}"), r#"{  "a": "\u{202E}"}"#);
    }
}
