//! One tool: what it does, how risky it is and why, who may call it, and a form to try it.

use askama::Template;
use axum::http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::assets;
use crate::items::{Explained, Grant, Row};
use crate::look::Look as _;
use crate::pages::audit::{RowLine, line};
use crate::problem::{Problem, said};
use crate::shell::Shell;
use crate::shown::{Piece, foreign, marked, stems};
use crate::visit::{Outcome, Visit, page, part};

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
    could_go_wrong: String,
    attack_patterns: Vec<String>,
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
    signals: Vec<(String, String)>,
    labels: Vec<String>,
    fingerprint: String,
    definition: String,
    hidden: usize,
    recommended: String,
    could_go_wrong: String,
    patterns: Vec<String>,
    callers: Vec<Caller>,
    calls: Vec<RowLine>,
    is_quarantined: bool,
    grants: Vec<String>,
    tried: Option<Tried>,
    grant: String,
}

/// One argument of the input schema.
struct Parameter {
    name: String,
    /// The name of its form field.
    field: String,
    kind: String,
    is_required: bool,
    description: String,
    /// Allowed values, if it is a choice.
    choices: Vec<String>,
    /// What the person entered.
    value: String,
}

/// What a grant may do with the tool now.
struct Caller {
    label: String,
    policy: String,
    effect: String,
    effect_text: String,
    rule: String,
    href: String,
    limits: Vec<LimitLine>,
}

struct LimitLine {
    name: String,
    used: String,
    max: String,
    percent: u32,
}

/// A call that was tried.
struct Tried {
    is_error: bool,
    verdict: String,
    request: String,
    answer: String,
    text: String,
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
    let mut callers = Vec::new();
    for grant in &valid {
        callers.extend(caller(visit, &s, grant, &server, &name).await?);
    }
    let mut grants: Vec<String> = valid.iter().map(|grant| grant.label.clone()).collect();
    if s.mode == "local" {
        grants.insert(0, "local".to_owned());
    }
    let listed: Vec<crate::items::Tool> = visit.list("/api/v1/tools").await?;
    let is_it = |tool: &&crate::items::Tool| tool.server == server && tool.name == name;
    let is_quarantined = listed.iter().find(is_it).is_some_and(|it| it.state == "quarantined");
    page(&ToolPage {
        assets: &assets::VERSION,
        path,
        class_text: s.tr(&format!("class-{}", detail.class)),
        level_text: s.tr(&format!("level-{}", detail.level)),
        confidence: format!("{:.0} %", detail.confidence * 100.0),
        title: foreign(text("title"), 200),
        description: marked(&foreign(text("description"), 6_000), &stems),
        parameters: parameters(&detail.definition, visit),
        signals: detail
            .signals
            .iter()
            .map(|it| (foreign(&it.what, 300), foreign(&it.r#where, 120)))
            .collect(),
        labels: labels(&s, &detail.labels),
        fingerprint: detail.fingerprint.unwrap_or_default(),
        definition: foreign(&format!("{:#}", detail.definition), 40_000),
        hidden: detail.hidden,
        recommended: recommended(&name, &detail.recommended),
        could_go_wrong: foreign(&detail.could_go_wrong, 2_000),
        patterns: detail.attack_patterns.iter().map(|it| s.tr(&format!("attack-{it}"))).collect(),
        callers,
        calls: rows.iter().map(|row| line(&s, row)).collect(),
        is_quarantined,
        grants,
        tried,
        grant: visit.form.text("grant").to_owned(),
        class: detail.class,
        server,
        name,
        s,
    })
}

async fn recent(visit: &Visit, server: &str, name: &str) -> Result<Vec<Row>, Problem> {
    let query: String = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs([("server", server), ("tool", name), ("order", "newest"), ("limit", "10")])
        .finish();
    visit.list(&format!("/api/v1/audit?{query}")).await
}

/// What a grant may do with the tool; `None` if it has no policy that can be explained.
async fn caller(
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
    Ok(Some(Caller {
        label: grant.label.clone(),
        href: format!("/policies/{}#rule={}", part(&policy), part(&rule)),
        policy,
        effect_text: s.tr(&format!("effect-{effect}")),
        effect,
        rule,
        limits: limits
            .iter()
            .map(|limit| {
                let number = |value: &Value| match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let (used, max) = (number(&limit.used), number(&limit.max));
                let share = |text: &str| text.parse::<f64>().unwrap_or_default();
                let percent =
                    if share(&max) > 0.0 { share(&used) * 100.0 / share(&max) } else { 100.0 };
                let steps = (0..=100u32).rev().step_by(5);
                let percent = steps.into_iter().find(|step| f64::from(*step) <= percent);
                let name = format!("{} / {}", limit.counter, limit.window);
                LimitLine { name, used, max, percent: percent.unwrap_or(0) }
            })
            .collect(),
    }))
}

fn labels(s: &Shell, labels: &Value) -> Vec<String> {
    let names: Vec<&str> = match labels {
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        Value::Object(map) => map
            .iter()
            .filter(|(_, is)| **is == Value::Bool(true))
            .map(|(name, _)| name.as_str())
            .collect(),
        _ => Vec::new(),
    };
    names.into_iter().map(|name| s.tr(&format!("label-{}", name.replace('_', "-")))).collect()
}

/// The recommended entry, ready to paste below `tools:`.
fn recommended(tool: &str, entry: &Value) -> String {
    let escaped = toolgate_catalog::escape_glob(tool);
    let is_plain = tool.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    let key = if is_plain { escaped } else { Value::from(escaped).to_string() };
    format!("tools:\n  {key}: {entry}\n")
}

fn parameters(definition: &Value, visit: &Visit) -> Vec<Parameter> {
    let schema = definition.get("inputSchema").or_else(|| definition.get("input_schema"));
    let Some(schema) = schema else { return Vec::new() };
    let required: Vec<&str> =
        schema.at("required").as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema.at("properties").as_object().into_iter().flatten();
    let of = |(name, property): (&String, &Value)| {
        let kind = match (&property.at("type"), property.get("enum")) {
            (_, Some(_)) => "choice",
            (Value::String(kind), _) => match kind.as_str() {
                "string" => "string",
                "integer" | "number" => "number",
                "boolean" => "boolean",
                _ => "json",
            },
            _ => "json",
        };
        let choices = property.at("enum").as_array().into_iter().flatten();
        let choices = choices.map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
        let field = format!("arg.{name}");
        Parameter {
            value: visit.form.raw(&field).to_owned(),
            name: foreign(name, 120),
            field,
            kind: kind.to_owned(),
            is_required: required.contains(&name.as_str()),
            description: foreign(property.at("description").as_str().unwrap_or_default(), 400),
            choices: choices.map(|it| foreign(&it, 120)).collect(),
        }
    };
    properties.take(64).map(of).collect()
}

/// Calls the tool with the rights of a grant.
pub(crate) async fn call(visit: Visit) -> Outcome {
    let path = format!("/tools/{}/{}", part(visit.param("server")), part(visit.param("tool")));
    let detail: Detail = visit.get(&format!("/api/v1{path}")).await?;
    let tried = match arguments(&visit, &detail.definition) {
        Err(name) => Tried::failed(visit.trv("try-not-json", &name)),
        Ok(arguments) => {
            let body = json!({ "grant": visit.form.text("grant"), "arguments": arguments });
            match visit.send(&Method::POST, &format!("/api/v1{path}/call"), &body).await {
                Ok(messages) => Tried::of(&visit, &messages),
                Err(Problem::Refused(fault)) => Tried::failed(said(&fault)),
                Err(other) => return Err(other),
            }
        }
    };
    render(&visit, Some(tried)).await
}

/// The arguments that the form describes; the name of the field that is not valid JSON.
fn arguments(visit: &Visit, definition: &Value) -> Result<Value, String> {
    let mut arguments = Map::new();
    for parameter in parameters(definition, visit) {
        let text = visit.form.raw(&parameter.field);
        let name = parameter.field.strip_prefix("arg.").unwrap_or_default().to_owned();
        if text.is_empty() && !(parameter.is_required && parameter.kind == "string") {
            continue;
        }
        let value = match parameter.kind.as_str() {
            "string" => Value::from(text),
            "choice" => choice(definition, &name, text),
            _ => serde_json::from_str(text).map_err(|_| name.clone())?,
        };
        arguments.insert(name, value);
    }
    Ok(Value::Object(arguments))
}

/// The allowed value that is shown as this text.
fn choice(definition: &Value, name: &str, text: &str) -> Value {
    let schema = definition.get("inputSchema").or_else(|| definition.get("input_schema"));
    let values =
        schema.map(|schema| schema.at("properties").at(name).at("enum")).and_then(Value::as_array);
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let found = values.into_iter().flatten().find(|value| foreign(&shown(value), 120) == text);
    found.cloned().unwrap_or_else(|| text.into())
}

impl Tried {
    fn failed(text: String) -> Self {
        let (request, answer) = (String::new(), String::new());
        Self { is_error: true, verdict: "error".to_owned(), request, answer, text }
    }

    fn of(visit: &Visit, messages: &Value) -> Self {
        let answer = &messages.at("answer");
        let result = &answer.at("result");
        let code = result.at("_meta").at("error_code").as_str();
        let is_error = result.at("isError") == true || answer.get("error").is_some();
        let verdict = match (code, is_error) {
            (Some(code), _) => code.to_owned(),
            (None, true) => visit.tr("try-tool-error"),
            (None, false) => visit.tr("try-allowed"),
        };
        let contents = result.at("content").as_array().into_iter().flatten();
        let texts = contents.filter_map(|content| content.at("text").as_str());
        let mut text = texts.collect::<Vec<_>>().join("\n");
        if let Some(message) = answer.at("error").at("message").as_str() {
            message.clone_into(&mut text);
        }
        Self {
            is_error,
            verdict,
            request: foreign(&format!("{:#}", messages.at("request")), 20_000),
            answer: foreign(&format!("{answer:#}"), 60_000),
            text: foreign(&text, 8_000),
        }
    }
}

/// Approves a quarantined definition.
pub(crate) async fn approve(visit: Visit) -> Outcome {
    let path = format!("/tools/{}/{}", part(visit.param("server")), part(visit.param("tool")));
    let body = json!({ "fingerprint": visit.form.text("fingerprint") });
    let sent = visit.send(&Method::POST, &format!("/api/v1{path}/approve"), &body).await;
    visit.ended(sent, &path, visit.trv("done-definition-approved", visit.param("tool")))
}
