//! Who may call a tool now, by which rule, and how much of each limit is used.

use axum::http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::items::{Grant, PolicyText};
use crate::pages::limit_use::{LimitLine, LimitUse};
use crate::pages::policy::{line_of, rule_href};
use crate::problem::Problem;
use crate::shell::Shell;
use crate::visit::{Visit, part};

/// The explanation of a decision.
#[derive(Debug, Clone, Deserialize)]
struct Explained {
    effect: String,
    rule: String,
    #[serde(default)]
    limits: Vec<LimitUse>,
}

/// What a grant may do with the tool now.
pub(crate) struct Caller {
    pub(crate) label: String,
    pub(crate) policy: String,
    pub(crate) effect: String,
    pub(crate) effect_text: String,
    pub(crate) rule: String,
    /// Its line in the document; 0 if it has none.
    pub(crate) line: usize,
    pub(crate) href: String,
    pub(crate) limits: Vec<LimitLine>,
}

/// What a grant may do with the tool; `None` if it has no policy that can be explained.
pub(crate) async fn caller(
    visit: &Visit,
    s: &Shell,
    grant: &Grant,
    server: &str,
    tool: &str,
) -> Result<Option<Caller>, Problem> {
    let reaches = grant.servers.as_ref().is_none_or(|names| names.iter().any(|it| it == server));
    let is_server = !matches!(server, "sessions" | "toolgate");
    if is_server && !reaches {
        return Ok(None);
    }
    let mut line = 0;
    let mut in_shadow = false;
    let (policy, explained) = match &grant.policy {
        None => (String::new(), None),
        Some(policy) => {
            let target = format!("/api/v1/policies/{}/explain", part(policy));
            let body = json!({ "grant": grant.label, "server": server, "tool": tool });
            let explained = visit.send(&Method::POST, &target, &body).await;
            match explained {
                Ok(explained) => {
                    (policy.clone(), serde_json::from_value::<Explained>(explained).ok())
                }
                // The policy is broken, so everything is denied.
                Err(Problem::Refused(_)) => (policy.clone(), None),
                Err(other) => return Err(other),
            }
        }
    };
    let effect = explained.as_ref().map_or("deny", |it| it.effect.as_str()).to_owned();
    let rule = explained.as_ref().map_or("(no policy)", |it| it.rule.as_str()).to_owned();
    let limits = explained.map(|it| it.limits).unwrap_or_default();
    if !policy.is_empty() {
        in_shadow = s.in_shadow.contains(&policy);
        let text: PolicyText = visit.get(&format!("/api/v1/policies/{}", part(&policy))).await?;
        line = line_of(&text.document, &rule);
    }
    // Calls pass in shadow mode; what is shown is what would happen without it.
    let effect = match (in_shadow, effect.as_str()) {
        (true, "deny" | "hide") => "shadow_deny".to_owned(),
        (true, "hold") => "shadow_hold".to_owned(),
        _ => effect,
    };
    Ok(Some(Caller {
        label: grant.label.clone(),
        href: rule_href(&policy, &rule),
        policy,
        line,
        effect_text: if in_shadow {
            s.decision_text(&effect)
        } else {
            s.tr(&format!("effect-{effect}"))
        },
        effect,
        rule,
        limits: limits.iter().map(LimitUse::line).collect(),
    }))
}
