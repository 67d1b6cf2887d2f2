//! Policies: list and create.

use askama::Template;
use axum::http::Method;
use toolgate_policy::RECOMMENDED;

use crate::assets;
use crate::items::{Grant, PolicyItem};
use crate::shell::Shell;
use crate::shown::{Moment, short_hash};
use crate::visit::{Outcome, Visit, page, part};

#[derive(Template)]
#[template(path = "policies.html")]
struct PoliciesPage {
    s: Shell,
    assets: &'static str,
    policies: Vec<PolicyLine>,
}

struct PolicyLine {
    policy: PolicyItem,
    path: String,
    hash: String,
    version: String,
    created: Option<Moment>,
    grants: Vec<String>,
}

/// The page.
pub(crate) async fn show(visit: Visit) -> Outcome {
    let s = Shell::of(&visit, "policies").await?;
    let policies: Vec<PolicyItem> = visit.list("/api/v1/policies").await?;
    let grants: Vec<Grant> = visit.list("/api/v1/grants").await?;
    let policies = policies.into_iter().map(|policy| {
        let uses = |grant: &&Grant| {
            grant.revoked.is_none() && grant.policy.as_deref() == Some(&policy.name)
        };
        PolicyLine {
            path: part(&policy.name),
            hash: short_hash(policy.hash.as_deref().unwrap_or_default()),
            version: policy.version.map(|version| format!("v{version}")).unwrap_or_default(),
            created: Moment::of(policy.created.as_deref()),
            grants: grants.iter().filter(uses).map(|grant| grant.label.clone()).collect(),
            policy,
        }
    });
    let policies = policies.collect();
    page(&PoliciesPage { s, assets: &assets::VERSION, policies })
}

/// Creates a policy: a copy of `recommended`, to edit.
pub(crate) async fn create(visit: Visit) -> Outcome {
    let name = visit.form.text("name").to_owned();
    let target = format!("/api/v1/policies/{}", part(&name));
    let sent = visit.call(&Method::PUT, &target, RECOMMENDED.into()).await;
    let to =
        if sent.is_ok() { format!("/policies/{}", part(&name)) } else { "/policies".to_owned() };
    visit.ended(sent, &to, visit.trv("done-policy-created", &name))
}
