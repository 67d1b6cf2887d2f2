//! One policy: the builder, its document, sentences, what a draft would change, versions.

use askama::Template;
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use toolgate_policy::RuleLines;

use crate::assets;
use crate::items::{Grant, PolicyText, PolicyVersion};
use crate::look::Look as _;
use crate::problem::{Problem, said};
use crate::shell::Shell;
use crate::shown::{foreign, short_hash};
use crate::visit::{Outcome, Visit, part, with_status};

mod choices;
mod conditions;
mod draft;
mod edit;
mod shadow;
mod versions;

use draft::{Draft, draft_of};
use edit::{as_stored, with_rule};
use shadow::ShadowReport;
use versions::{VersionLine, compare};

pub(crate) use draft::draft;
pub(crate) use shadow::enforce;

#[derive(Template)]
#[template(path = "policy.html")]
struct PolicyPage {
    s: Shell,
    assets: &'static str,
    name: String,
    path: String,
    source: String,
    version: String,
    hash: String,
    document: String,
    is_fixed: bool,
    can_save: bool,
    d: Draft,
    grants: Vec<String>,
    versions: Vec<VersionLine>,
    error: String,
    /// The tool whose recommended rule the draft has.
    applied: String,
    shadow: Option<ShadowReport>,
    /// The rule that a link leads to, and its line; 0 without one.
    rule: String,
    line: usize,
}

/// The page.
pub(crate) async fn show(visit: Visit) -> Outcome {
    let name = visit.param("name");
    let policy: PolicyText = visit.get(&format!("/api/v1/policies/{}", part(name))).await?;
    let (document, applied) = match visit.query.text("apply").split_once('/') {
        Some((server, tool)) => {
            let target = format!("/api/v1/tools/{}/{}", part(server), part(tool));
            let detail: Value = visit.get(&target).await?;
            let edited = with_rule(&policy.document, server, tool, detail.at("recommended"));
            (edited.unwrap_or_else(|_| policy.document.clone()), format!("{server}/{tool}"))
        }
        None => (policy.document.clone(), String::new()),
    };
    let draft = Shown { document, applied, ..Shown::default() };
    render(&visit, policy, draft, StatusCode::OK).await
}

/// What the page shows instead of the stored document.
#[derive(Default)]
struct Shown {
    document: String,
    error: String,
    applied: String,
}

async fn render(visit: &Visit, policy: PolicyText, shown: Shown, status: StatusCode) -> Outcome {
    let Shown { document, error, applied } = shown;
    let s = Shell::of(visit, "policies").await?;
    let name = policy.item.name.clone();
    let path = part(&name);
    let is_fixed = policy.item.source != "store";
    let versions: Vec<PolicyVersion> = if is_fixed {
        Vec::new()
    } else {
        visit.list(&format!("/api/v1/policies/{path}/versions")).await?
    };
    let grants: Vec<Grant> = visit.list("/api/v1/grants").await?;
    let uses = |grant: &Grant| grant.revoked.is_none() && grant.policy.as_deref() == Some(&name);
    let shadow = ShadowReport::of(visit, &s, &policy, &versions).await?;
    let d = draft_of(visit, &s, &policy, &document).await?;
    let rule = visit.query.text("rule");
    let page = PolicyPage {
        assets: &assets::VERSION,
        path,
        source: policy.item.source,
        version: policy.item.version.map(|version| format!("v{version}")).unwrap_or_default(),
        hash: short_hash(policy.item.hash.as_deref().unwrap_or_default()),
        is_fixed,
        can_save: s.is_manager && !is_fixed,
        d,
        grants: grants.into_iter().filter(uses).map(|grant| grant.label).collect(),
        versions: compare(&versions, &policy.document, visit.query.text("compare")),
        line: line_of(&document, rule),
        rule: foreign(rule, 200),
        document,
        error,
        applied: foreign(&applied, 200),
        shadow,
        name,
        s,
    };
    with_status(status, &page)
}

/// The page of a policy, at the line of a rule.
pub(crate) fn rule_href(policy: &str, rule: &str) -> String {
    format!("/policies/{}?rule={}#document", part(policy), part(rule))
}

/// The line of a rule in a document: that of the rule itself, or of the entry it is in; 0 if the
/// document has none.
pub(crate) fn line_of(document: &str, rule: &str) -> usize {
    let named = [("(default deny)", "/default"), ("(hidden)", "/hide")];
    let named = named.into_iter().find(|(name, _)| *name == rule).map(|(_, pointer)| pointer);
    let mut pointer = named.unwrap_or(rule);
    let places = RuleLines::of(document);
    while pointer.starts_with('/') {
        if let Some(line) = places.as_ref().and_then(|places| places.line(pointer)) {
            return line;
        }
        pointer = pointer.rsplit_once('/').map(|(outer, _)| outer).unwrap_or_default();
    }
    0
}

/// Saves the document, under this name or another one.
pub(crate) async fn save(visit: Visit) -> Outcome {
    let name = visit.form.some("as").unwrap_or(visit.param("name")).to_owned();
    let current =
        visit.get::<PolicyText>(&format!("/api/v1/policies/{}", part(visit.param("name")))).await?;
    let document = as_stored(visit.form.raw("document"), &current.document);
    let target = format!("/api/v1/policies/{}", part(&name));
    match visit.call(&Method::PUT, &target, document.clone().into()).await {
        Ok(_) => {
            visit.done(&format!("/policies/{}", part(&name)), visit.trv("done-policy-saved", &name))
        }
        Err(Problem::Refused(fault)) => {
            let status = fault.status();
            let error = said(&fault);
            let shown = Shown { document, error, applied: String::new() };
            render(&visit, current, shown, status).await
        }
        Err(other) => Err(other),
    }
}

/// Makes an earlier version active again.
pub(crate) async fn rollback(visit: Visit) -> Outcome {
    let path = part(visit.param("name"));
    let version: u64 = visit.form.text("version").parse().unwrap_or_default();
    let target = format!("/api/v1/policies/{path}/rollback");
    let sent = visit.send(&Method::POST, &target, &json!({ "version": version })).await;
    let text = visit.trv("done-rolled-back", &version.to_string());
    visit.ended(sent, &format!("/policies/{path}"), text)
}

/// Removes a policy that no grant uses.
pub(crate) async fn remove(visit: Visit) -> Outcome {
    let target = format!("/api/v1/policies/{}", part(visit.param("name")));
    let sent = visit.send(&Method::DELETE, &target, &Value::Null).await;
    let to = if sent.is_ok() {
        "/policies".to_owned()
    } else {
        format!("/policies/{}", part(visit.param("name")))
    };
    visit.ended(sent, &to, visit.tr("done-policy-removed"))
}
