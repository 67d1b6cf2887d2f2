//! Names that a server does not list but may accept as another one: folded, they equal a name that
//! the server lists or that a policy rule names.
//!
//! A request with such a name is rejected, because the rule, the class or the counter of the real
//! name would not apply to it. Any other unlisted name is forwarded, so that the agent receives the
//! server's own error.

use std::sync::Arc;

use toolgate_admission::admit::Admission;
use toolgate_admission::call_context::{CallContext, CallSubject};
use toolgate_admission::list_kind::Kind;
use toolgate_json::fold;

use crate::link::Link;

/// Whether the name is such a name. Fetches the server's list if it is needed and unknown.
pub(crate) async fn is_imitation(
    admission: &Admission,
    link: &Arc<Link>,
    context: &CallContext,
) -> bool {
    let (kind, name) = match &context.subject {
        CallSubject::Tool(name, _) => (Kind::Tools, name),
        CallSubject::Prompt(name) => (Kind::Prompts, name),
        _ => return false,
    };
    let names = &link.server().listed_names;
    let listed = names.lists(kind, name);
    if listed == Some(true) {
        return false;
    }
    let by_policy = imitates_rule(context, kind, name);
    let is_odd = *fold(name) != **name;
    if listed.is_none() && (by_policy || is_odd) && !admission.refuses_name(context) {
        link.learn_list(kind).await;
        if names.lists(kind, name) == Some(true) {
            return false;
        }
    }
    let imitates = by_policy || names.lists_folded(kind, name);
    // A list may have arrived since the first look, or arrives now.
    imitates && !names.knows(kind, name)
}

fn imitates_rule(context: &CallContext, kind: Kind, name: &str) -> bool {
    let Some(in_force) = &context.sender.grant.policy else { return false };
    match kind {
        Kind::Tools => in_force.policy.is_imitated(&context.server, name),
        _ => in_force.policy.is_prompt_imitated(name),
    }
}
