//! One tool: what it does, how risky it is and why, who may call it, and a form to try it.

use askama::Template;
use serde::Deserialize;
use serde_json::Value;

use crate::assets;
use crate::items::{Grant, PolicyItem, Row};
use crate::look::Look as _;
use crate::pages::audit::{RowLine, line};
use crate::problem::Problem;
use crate::recommended::shown_rule;
use crate::risk_texts::{Risk, hazard, signal};
use crate::shell::Shell;
use crate::shown::{Piece, coded, foreign, marked, shell_word, stems};
use crate::visit::{Outcome, Visit, page, part};

mod callers;
mod review;
mod try_it;

use callers::{Caller, callers};
use review::{Review, Reviewed};
use try_it::{Parameter, Tried, parameters};

pub(crate) use review::{approve, reject};
pub(crate) use try_it::call;

#[derive(Deserialize)]
struct Detail {
    class: String,
    level: String,
    confidence: f64,
    signals: Vec<Signal>,
    labels: Value,
    fingerprint: Option<String>,
    definition: Value,
    hidden: usize,
    recommended: Value,
    attack_patterns: Vec<String>,
    #[serde(flatten)]
    reviewed: Reviewed,
}

#[derive(Deserialize)]
struct Signal {
    what: String,
    r#where: String,
}

#[derive(Template)]
#[template(path = "tool.html")]
struct ToolPage {
    s: Shell,
    assets: &'static str,
    server: String,
    name: String,
    path: String,
    class: String,
    class_text: String,
    level_text: String,
    confidence: String,
    title: String,
    description: Vec<Piece>,
    parameters: Vec<Parameter>,
    signals: Vec<(Vec<Piece>, String)>,
    labels: Vec<String>,
    fingerprint: String,
    definition: String,
    hidden: usize,
    recommended: String,
    /// Policies to which the recommended rule can be applied: name and page of the draft.
    policies: Vec<(String, String)>,
    could_go_wrong: Vec<Piece>,
    /// Attack patterns that apply: their anchor and name.
    patterns: Vec<(String, String)>,
    callers: Vec<Caller>,
    calls: Vec<RowLine>,
    review: Option<Review>,
    grants: Vec<String>,
    tried: Option<Tried>,
    grant: String,
    /// `SERVER/TOOL` and the call of *Try it*, for a shell.
    cli_name: String,
    cli_call: String,
}

/// The page.
pub(crate) async fn show(visit: Visit) -> Outcome {
    render(&visit, None).await
}

async fn render(visit: &Visit, tried: Option<Tried>) -> Outcome {
    let (server, name) = (visit.param("server").to_owned(), visit.param("tool").to_owned());
    let s = Shell::of(visit, "tools").await?;
    let path = format!("/tools/{}/{}", part(&server), part(&name));
    let detail: Detail = visit.get(&format!("/api/v1{path}")).await?;
    let said: Vec<String> = detail.signals.iter().map(|signal| signal.what.clone()).collect();
    let stems = stems(&said);
    let text = |key: &str| detail.definition.at(key).as_str().unwrap_or_default();
    let rows: Vec<Row> = recent(visit, &server, &name).await?;
    let all: Vec<Grant> = visit.list("/api/v1/grants").await?;
    let valid: Vec<&Grant> = all.iter().filter(|grant| grant.revoked.is_none()).collect();
    let callers = callers(visit, &s, &valid, (&server, &name)).await?;
    let mut grants: Vec<String> = valid.iter().map(|grant| grant.label.clone()).collect();
    if s.mode == "local" {
        grants.insert(0, "local".to_owned());
    }
    let policies: Vec<PolicyItem> = visit.list("/api/v1/policies").await?;
    let parameters = parameters(&detail.definition, visit);
    let risk = Risk {
        server: &server,
        tool: &name,
        class: &detail.class,
        labels: &names(&detail.labels),
        arguments: parameters.iter().map(|it| it.name.as_str()).collect(),
        signals: detail.signals.iter().map(|it| (it.what.as_str(), it.r#where.as_str())).collect(),
    };
    page(&ToolPage {
        assets: &assets::VERSION,
        path,
        class_text: s.tr(&format!("class-{}", detail.class)),
        level_text: s.tr(&format!("level-{}", detail.level)),
        confidence: format!("{:.0} %", detail.confidence * 100.0),
        title: foreign(text("title"), 200),
        description: marked(&foreign(text("description"), 6_000), &stems),
        could_go_wrong: coded(&foreign(&hazard(s.language, &risk), 2_000)),
        signals: detail
            .signals
            .iter()
            .map(|it| signal(s.language, &it.what, &it.r#where))
            .map(|(what, place)| (coded(&foreign(&what, 300)), foreign(&place, 120)))
            .collect(),
        labels: names(&detail.labels)
            .iter()
            .map(|name| s.tr(&format!("label-{}", name.replace('_', "-"))))
            .collect(),
        parameters,
        fingerprint: detail.fingerprint.unwrap_or_default(),
        definition: foreign(&format!("{:#}", detail.definition), 40_000),
        hidden: detail.hidden,
        recommended: shown_rule(&server, &name, &detail.recommended),
        policies: policies.into_iter().map(|policy| apply(&policy.name, &server, &name)).collect(),
        patterns: detail
            .attack_patterns
            .iter()
            .map(|it| (it.clone(), s.tr(&format!("attack-{it}"))))
            .collect(),
        callers,
        calls: rows.iter().map(|row| line(&s, row)).collect(),
        review: Review::of(&s, &name, &detail.reviewed, &detail.class),
        grants,
        cli_name: shell_word(&format!("{server}/{name}")),
        cli_call: try_it::command(visit, &server, &name, tried.as_ref()),
        tried,
        grant: visit.form.text("grant").to_owned(),
        class: detail.class,
        server,
        name,
        s,
    })
}

/// A policy, and its page with the recommended rule of the tool as a draft.
fn apply(policy: &str, server: &str, tool: &str) -> (String, String) {
    let tool = part(&format!("{server}/{tool}"));
    (policy.to_owned(), format!("/policies/{}?apply={tool}", part(policy)))
}

async fn recent(visit: &Visit, server: &str, name: &str) -> Result<Vec<Row>, Problem> {
    let query: String = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs([("server", server), ("tool", name), ("order", "newest"), ("limit", "10")])
        .finish();
    visit.list(&format!("/api/v1/audit?{query}")).await
}

/// The names of labels that are set.
fn names(labels: &Value) -> Vec<String> {
    let names = labels.as_array().into_iter().flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}
