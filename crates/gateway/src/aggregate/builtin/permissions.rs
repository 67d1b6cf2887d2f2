//! `my_permissions`: what the calling grant may do, tool by tool, and how much of each limit is used.
//!
//! Invariant: it contains the tools of the agent's list, decided by the function that decides calls;
//! hidden tools are in neither.

use std::error::Error;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use toolgate_admission::call_context::Sender;
use toolgate_policy::{Call, Class, Effect, LimitState, Policy, Usage, explain, limits};

use super::{BuiltIn, Failed};
use crate::aggregate::{self, Listed};
use crate::downstream::agent::AgentSession;

pub(super) const MY_PERMISSIONS: BuiltIn = BuiltIn {
    name: NAME,
    class: Class::Read,
    of_sessions: false,
    definition: r#"{"name":"my_permissions","description":"Lists what you may do here: each tool you see, with the effect of the policy (allow, deny, or hold: a person must approve), the rule, and how much of its limits is used. Conditions on arguments are not included. Call it before you plan many calls, or after a call was denied.","inputSchema":{"type":"object","properties":{},"additionalProperties":false},"outputSchema":{"type":"object","properties":{"grant":{"type":"string"},"identity":{"type":["string","null"]},"policy":{"type":["string","null"]},"mode":{"type":"string","enum":["enforce","shadow"]},"tools":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"effect":{"type":"string","enum":["allow","deny","hold"]},"class":{"type":"string"},"rule":{"type":"string"},"limits":{"type":"array","items":{"type":"object","properties":{"counter":{"type":"string"},"used":{"type":"number"},"max":{"type":"number"},"window":{"type":"string"},"resets_at":{"type":["string","null"]}},"required":["counter","used","max","window","resets_at"]}}},"required":["name","effect","class","rule","limits"]}}},"required":["grant","identity","policy","mode","tools"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#,
    run: |session, arguments| Box::pin(my_permissions(session, arguments)),
};

const NAME: &str = "my_permissions";

/// The result, as `outputSchema` describes it.
#[derive(Serialize)]
struct Permissions<'a> {
    grant: &'a str,
    identity: Option<&'a str>,
    policy: Option<&'a str>,
    mode: &'static str,
    tools: Vec<Permission>,
}

#[derive(Serialize)]
struct Permission {
    name: String,
    effect: &'static str,
    class: Class,
    rule: String,
    limits: Vec<LimitState>,
}

async fn my_permissions(session: Arc<AgentSession>, arguments: String) -> Result<String, Failed> {
    Failed::unless_empty(NAME, &arguments)?;
    let tools = aggregate::tools(&session).await;
    let sender = session.sender();
    let label = Arc::clone(&sender.grant.label);
    let read = session.admission().read_usage(&label, move |usage, now| {
        serde_json::to_string(&Permissions::of(&sender, tools, usage, now))
    });
    match read.await {
        Ok(Ok(permissions)) => Ok(permissions),
        Ok(Err(why)) => Err(not_readable(&why)),
        Err(why) => Err(not_readable(&why)),
    }
}

fn not_readable(why: &dyn Error) -> Failed {
    let text = format!("[NOT SENT] the used limits cannot be read now: {why}. Retry later.");
    Failed { code: "not_audited", text }
}

impl<'a> Permissions<'a> {
    fn of(sender: &'a Sender, tools: Vec<Listed>, usage: &dyn Usage, now: Timestamp) -> Self {
        let grant = &sender.grant;
        let active = grant.policy.as_ref();
        let shadow = active.is_some_and(|active| active.policy.is_shadow(now));
        let tools = tools.into_iter().map(|tool| match active {
            Some(active) => permission(sender, &active.policy, tool, usage, now),
            None => without_policy(tool),
        });
        Self {
            tools: tools.collect(),
            grant: &grant.label,
            identity: grant.identity.as_deref(),
            policy: active.map(|active| &*active.name),
            mode: if shadow { "shadow" } else { "enforce" },
        }
    }
}

fn permission(
    sender: &Sender,
    policy: &Policy,
    tool: Listed,
    usage: &dyn Usage,
    now: Timestamp,
) -> Permission {
    let Listed { server, own, aliases, class, .. } = &tool;
    let call = Call { aliases, ..sender.call(server, own, *class) };
    let explained = explain(policy, &call, usage, now);
    let effect = match explained.effect {
        Effect::Allow => "allow",
        Effect::Hold => "hold",
        // A document in shadow hides nothing.
        Effect::Deny | Effect::Hide => "deny",
    };
    let limits = limits(policy, &call, usage, now);
    Permission { effect, rule: explained.rule, limits, class: tool.class, name: tool.shown }
}

fn without_policy(tool: Listed) -> Permission {
    let rule = "(no policy)".to_owned();
    let (name, class) = (tool.shown, tool.class);
    Permission { name, effect: "deny", class, rule, limits: Vec::new() }
}
