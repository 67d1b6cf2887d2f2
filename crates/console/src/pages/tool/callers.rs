//! Who may call a tool now, by which rule, and how much of each limit is used.

use std::collections::HashMap;

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

/// What each grant that reaches the tool may do with it.
pub(crate) async fn callers(
    visit: &Visit,
    s: &Shell,
    grants: &[&Grant],
    (server, tool): (&str, &str),
) -> Result<Vec<Caller>, Problem> {
    let is_server = !matches!(server, "sessions" | "toolgate");
    // Many grants share a policy.
    let mut documents: HashMap<&str, String> = HashMap::new();
    let mut all = Vec::new();
    for grant in grants {
        let reaches =
            grant.servers.as_ref().is_none_or(|names| names.iter().any(|it| it == server));
        if is_server && !reaches {
            continue;
        }
        if let Some(policy) = grant.policy.as_deref().filter(|it| !documents.contains_key(it)) {
            let text: PolicyText = visit.get(&format!("/api/v1/policies/{}", part(policy))).await?;
            documents.insert(policy, text.document);
        }
        let document = grant.policy.as_deref().and_then(|policy| documents.get(policy));
        all.push(caller(visit, s, grant, (server, tool), document.map(String::as_str)).await?);
    }
    Ok(all)
}

/// What a grant may do with the tool, by its policy with this document.
async fn caller(
    visit: &Visit,
    s: &Shell,
    grant: &Grant,
    (server, tool): (&str, &str),
    document: Option<&str>,
) -> Result<Caller, Problem> {
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
    let in_shadow = s.in_shadow.contains(&policy);
    let line = document.map(|document| line_of(document, &rule)).unwrap_or_default();
    // Calls pass in shadow mode; what is shown is what would happen without it.
    let effect = match (in_shadow, effect.as_str()) {
        (true, "deny" | "hide") => "shadow_deny".to_owned(),
        (true, "hold") => "shadow_hold".to_owned(),
        _ => effect,
    };
    Ok(Caller {
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
    })
}
