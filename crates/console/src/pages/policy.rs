//! One policy: the builder, its document, sentences, what a draft would change, versions.

use askama::Template;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::IntoResponse as _;
use serde_json::{Value, json};
use toolgate_policy::{document_json, locate, set_member};

use crate::assets;
use crate::items::{
    Checked, Difference, Finding, Grant, Plan, PolicyText, PolicyVersion, ToolDecision,
};
use crate::look::Look as _;
use crate::problem::{Problem, said};
use crate::sentences::{Sentence, sentences};
use crate::shell::Shell;
use crate::shown::{foreign, short_hash};
use crate::visit::{Outcome, Visit, part, with_status};

mod versions;

use versions::{VersionLine, compare};

/// How many tools the builder shows.
const MOST: usize = 2_000;
const CLASSES: [&str; 6] = ["read", "write", "execute", "destructive", "financial", "other"];

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
}

/// The parts that follow from the document.
#[derive(Template)]
#[template(path = "draft.html")]
struct DraftPart {
    s: Shell,
    d: Draft,
    can_save: bool,
}

/// What follows from a document.
pub(crate) struct Draft {
    pub(crate) is_valid: bool,
    pub(crate) problems: Vec<Finding>,
    pub(crate) classes: Vec<Choice>,
    pub(crate) tools: Vec<Choice>,
    pub(crate) sentences: Vec<(Sentence, usize)>,
    pub(crate) differences: Vec<Changed>,
    pub(crate) resets: Vec<String>,
    pub(crate) compared: usize,
}

/// One row of the builder.
pub(crate) struct Choice {
    /// `tools` or `classes`.
    pub(crate) section: &'static str,
    /// The key of its entry.
    pub(crate) key: String,
    /// The name of its group.
    pub(crate) name: String,
    pub(crate) server: String,
    pub(crate) class: String,
    pub(crate) class_text: String,
    /// `allow`, `limit`, `ask`, `deny` or `hide`.
    pub(crate) effect: &'static str,
    pub(crate) rule: String,
    pub(crate) max: String,
    pub(crate) window: String,
    pub(crate) has_entry: bool,
    pub(crate) number: usize,
}

/// One decision that a draft changes.
pub(crate) struct Changed {
    pub(crate) grant: String,
    pub(crate) tool: String,
    pub(crate) before: String,
    pub(crate) before_text: String,
    pub(crate) after: String,
    pub(crate) after_text: String,
}

/// The page.
pub(crate) async fn show(visit: Visit) -> Outcome {
    let name = visit.param("name");
    let policy: PolicyText = visit.get(&format!("/api/v1/policies/{}", part(name))).await?;
    let document = policy.document.clone();
    render(&visit, policy, document, String::new(), StatusCode::OK).await
}

async fn render(
    visit: &Visit,
    policy: PolicyText,
    document: String,
    error: String,
    status: StatusCode,
) -> Outcome {
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
    let d = draft_of(visit, &s, &name, &document).await?;
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
        document,
        error,
        name,
        s,
    };
    with_status(status, &page)
}

/// Everything that follows from a document.
async fn draft_of(visit: &Visit, s: &Shell, name: &str, document: &str) -> Result<Draft, Problem> {
    let path = part(name);
    let body = document.to_owned();
    let target = format!("/api/v1/policies/{path}/check");
    let checked = visit.call(&Method::POST, &target, body.clone().into()).await?;
    let checked: Checked = serde_json::from_slice(&checked)
        .map_err(|_| Problem::Internal("an answer of the API cannot be read"))?;
    let plan = if checked.valid {
        let target = format!("/api/v1/policies/{path}/plan");
        let plan = visit.call(&Method::POST, &target, body.into()).await?;
        serde_json::from_slice(&plan).unwrap_or_default()
    } else {
        Plan::default()
    };
    let json: Value = document_json(document)
        .and_then(|json| serde_json::from_str(&json).ok())
        .unwrap_or_default();
    let said = if checked.valid { sentences(visit.language, &json) } else { Vec::new() };
    let said = said.into_iter().map(|sentence| {
        let line = locate(document, &sentence.rule).map(|(line, _)| line);
        (sentence, line.unwrap_or_default())
    });
    let reset = |it: &Value| {
        format!(
            "{} / {}",
            it.at("counter").as_str().unwrap_or("?"),
            it.at("window").as_str().unwrap_or("?")
        )
    };
    Ok(Draft {
        is_valid: checked.valid,
        problems: checked.problems,
        classes: class_choices(s, &json),
        tools: checked
            .tools
            .iter()
            .take(MOST)
            .enumerate()
            .map(|(number, tool)| tool_choice(s, &json, tool, number + CLASSES.len()))
            .collect(),
        sentences: said.collect(),
        differences: plan.differences.iter().take(500).map(|it| changed(s, it)).collect(),
        resets: plan.resets.iter().map(reset).collect(),
        compared: plan.compared,
    })
}

fn changed(s: &Shell, it: &Difference) -> Changed {
    let text = |effect: &str, limits: &[String]| {
        let limits =
            if limits.is_empty() { String::new() } else { format!(", {}", limits.join(", ")) };
        s.tr(&format!("effect-{effect}")) + &limits
    };
    Changed {
        grant: it.grant.clone(),
        tool: foreign(&format!("{}/{}", it.server, it.tool), 160),
        before_text: text(&it.before.effect, &it.before.limits),
        before: it.before.effect.clone(),
        after_text: text(&it.after.effect, &it.after.limits),
        after: it.after.effect.clone(),
    }
}

/// What an entry of a class says by itself.
fn class_choices(s: &Shell, document: &Value) -> Vec<Choice> {
    let of = |(number, class): (usize, &str)| {
        let entry = &document.at("classes").at(class);
        let default = document.at("default").as_str().unwrap_or("deny");
        let is_named = entry.at("action") == "allow" || default == "allow";
        let (max, window) = written_limit(entry);
        let effect = match entry.at("action").as_str() {
            Some("deny") => "deny",
            Some("hide") => "hide",
            Some("require_approval") => "ask",
            _ if !is_named => "deny",
            _ if entry.get("approve").is_some() => "ask",
            _ if !max.is_empty() => "limit",
            _ => "allow",
        };
        Choice {
            section: "classes",
            key: class.to_owned(),
            name: s.tr(&format!("class-{class}")),
            server: String::new(),
            class: class.to_owned(),
            class_text: s.tr(&format!("class-{class}-what")),
            effect,
            rule: String::new(),
            max,
            window,
            has_entry: entry.is_object(),
            number,
        }
    };
    CLASSES.into_iter().enumerate().map(of).collect()
}

fn tool_choice(s: &Shell, document: &Value, tool: &ToolDecision, number: usize) -> Choice {
    let own = toolgate_catalog::escape_glob(&tool.tool);
    let precise = format!("{}/{own}", tool.server);
    let entries = &document.at("tools");
    let key =
        if entries.get(&precise).is_none() && entries.get(&own).is_some() { own } else { precise };
    let (max, window) = match tool.limits.first().and_then(|limit| limit.split_once('/')) {
        Some((max, window)) => (max.to_owned(), window.to_owned()),
        None => (String::new(), String::new()),
    };
    let effect = match (tool.effect.as_str(), tool.limits.is_empty()) {
        ("hold", _) => "ask",
        ("deny", _) => "deny",
        ("hide", _) => "hide",
        (_, false) => "limit",
        (_, true) => "allow",
    };
    Choice {
        section: "tools",
        has_entry: entries.get(&key).is_some(),
        key,
        name: foreign(&tool.tool, 160),
        server: foreign(&tool.server, 60),
        class_text: s.tr(&format!("class-{}", tool.class)),
        class: tool.class.clone(),
        effect,
        rule: foreign(&tool.rule, 160),
        max,
        window,
        number,
    }
}

/// `30`, `minute` of an entry.
fn written_limit(entry: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match (&entry.at("rate_limit"), entry.at("limits").get(0)) {
        (Value::String(limit), _) => {
            let (max, window) = limit.split_once('/').unwrap_or((limit, "minute"));
            (max.to_owned(), window.to_owned())
        }
        (Value::Object(limit), _) => (
            limit.get("max").map(text).unwrap_or_default(),
            limit.get("window").map(text).unwrap_or_default(),
        ),
        (_, Some(limit)) => (text(limit.at("max")), text(limit.at("window"))),
        _ => (String::new(), String::new()),
    }
}

/// A draft: the document of the form, after the edit that the form describes, and what follows from it.
pub(crate) async fn draft(visit: Visit) -> Outcome {
    let form = &visit.form;
    let document = normal_lines(form.raw("document"));
    let edited = match form.some("key") {
        None => Ok(document.clone()),
        Some(key) => edit(
            &document,
            form.text("section"),
            key,
            form.text("effect"),
            form.text("max"),
            form.text("window"),
        ),
    };
    let (document, error) = match edited {
        Ok(edited) => (edited, String::new()),
        Err(error) => (document, error.to_string()),
    };
    let s = Shell::of(&visit, "policies").await?;
    let d = draft_of(&visit, &s, visit.param("name"), &document).await?;
    let can_save = s.is_manager;
    let html = DraftPart { s, d, can_save }.render()?;
    let body = json!({ "document": document, "html": html, "error": error }).to_string();
    let kind = HeaderValue::from_static("application/json");
    Ok(([(header::CONTENT_TYPE, kind)], body).into_response())
}

/// Sets the effect of one entry; everything else of the document stays.
fn edit(
    document: &str,
    section: &str,
    key: &str,
    effect: &str,
    max: &str,
    window: &str,
) -> Result<String, toolgate_policy::NotEdited> {
    let section = if section == "classes" { "classes" } else { "tools" };
    let is_class = section == "classes";
    let path = [section, key];
    let json: Value = document_json(document)
        .and_then(|json| serde_json::from_str(&json).ok())
        .unwrap_or_default();
    let has_entry = json.at(section).get(key).is_some_and(Value::is_object);
    let is_json = document.trim_start().starts_with('{');
    let max = max.parse::<u64>().unwrap_or(30);
    let window = if matches!(window, "minute" | "hour" | "day") { window } else { "minute" };
    let limit = format!("\"{max}/{window}\"");
    if effect == "inherit" {
        return set_member(document, &path, None);
    }
    let fresh = match effect {
        "limit" => vec![("rate_limit", limit.as_str())],
        "ask" => vec![("approve", "{}")],
        "deny" => vec![("action", "\"deny\"")],
        "hide" => vec![("action", "\"hide\"")],
        _ => Vec::new(),
    };
    let opens = is_class && !matches!(effect, "deny" | "hide");
    if !has_entry || effect == "hide" {
        let fresh = opens.then_some(("action", "\"allow\"")).into_iter().chain(fresh);
        return set_member(document, &path, Some(&flow(fresh, is_json)));
    }
    let entry = json.at(section).at(key).clone();
    let mut document = document.to_owned();
    let mut set = |name: &str, value: Option<&str>| {
        let value = value.map(|value| if is_json { value.to_owned() } else { unquoted(value) });
        let edited = set_member(&document, &[section, key, name], value.as_deref())?;
        document = edited;
        Ok::<_, toolgate_policy::NotEdited>(())
    };
    if !matches!(effect, "deny") {
        match (opens, entry.get("action")) {
            (true, Some(action)) if action == "allow" => {}
            (true, _) => set("action", Some("\"allow\""))?,
            (false, _) => {
                set("action", None)?;
                set("reason", None)?;
            }
        }
    }
    if !matches!(effect, "ask" | "deny") {
        set("approve", None)?;
    }
    if effect == "allow" {
        set("rate_limit", None)?;
        set("limits", None)?;
    }
    // A limit of its own is edited in the document.
    for (name, value) in fresh {
        if name != "rate_limit" || entry.get("limits").is_none() {
            set(name, Some(value))?;
        }
    }
    Ok(document)
}

fn flow<'a>(members: impl Iterator<Item = (&'a str, &'a str)>, is_json: bool) -> String {
    let one = |(name, value): (&str, &str)| {
        if is_json {
            format!("\"{name}\": {value}")
        } else {
            format!("{name}: {}", unquoted(value))
        }
    };
    let members = members.map(one).collect::<Vec<_>>().join(", ");
    if members.is_empty() { "{}".to_owned() } else { format!("{{ {members} }}") }
}

/// A value as people write it in YAML.
fn unquoted(value: &str) -> String {
    value.trim_matches('"').to_owned()
}

/// Forms send lines that end with CR LF.
fn normal_lines(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// The document of the form, with the line ends and the last line of the stored one: browsers change
/// both, and a document that was not edited must stay the same to the byte.
fn as_stored(sent: &str, stored: &str) -> String {
    let sent = normal_lines(sent);
    if sent == normal_lines(stored) {
        return stored.to_owned();
    }
    let is_windows = stored.contains("\r\n") && !stored.replace("\r\n", "").contains('\n');
    if is_windows { sent.replace('\n', "\r\n") } else { sent }
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
            render(&visit, current, document, said(&fault), status).await
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

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "# mine\nversion: \"1\"\ndefault: deny\ntools:\n  files/read: {} # ok\n";

    #[test]
    fn an_effect_is_set_and_the_rest_stays() {
        let cases = [
            ("files/read", "deny", "files/read: { action: deny } # ok\n"),
            ("files/read", "ask", "files/read: { approve: {} } # ok\n"),
            ("files/read", "limit", "files/read: { rate_limit: 5/hour } # ok\n"),
            ("files/read", "hide", "files/read: { action: hide } # ok\n"),
            ("files/read", "allow", "files/read: {} # ok\n"),
            ("files/new", "limit", "files/read: {} # ok\n  files/new: { rate_limit: 5/hour }\n"),
        ];
        for (key, effect, expected) in cases {
            let edited = edit(DOCUMENT, "tools", key, effect, "5", "hour").unwrap();
            assert!(
                edited.starts_with("# mine\n") && edited.ends_with(expected),
                "{effect}: {edited}"
            );
        }
    }

    #[test]
    fn one_effect_replaces_another() {
        let mut document = DOCUMENT.to_owned();
        for effect in ["deny", "ask", "limit", "allow", "hide", "allow"] {
            document = edit(&document, "tools", "files/read", effect, "5", "hour").unwrap();
        }
        assert_eq!(document_json(&document), document_json(DOCUMENT), "{document}");
        let gone = edit(DOCUMENT, "tools", "files/read", "inherit", "", "").unwrap();
        assert!(!gone.contains("files/read"), "{gone}");
    }

    #[test]
    fn a_class_that_is_opened_is_named() {
        let edited = edit(DOCUMENT, "classes", "write", "limit", "30", "minute").unwrap();
        assert!(
            edited.ends_with("classes:\n  write: { action: allow, rate_limit: 30/minute }\n"),
            "{edited}"
        );
        let denied = edit(&edited, "classes", "write", "deny", "", "").unwrap();
        assert!(denied.contains("action: deny"), "{denied}");
    }

    #[test]
    fn conditions_of_an_entry_survive_another_effect() {
        let source = "version: \"1\"\ndefault: deny\ntools:\n  pay:\n    # the cap\n    deny_if: [{ conditions: [{ path: args.a, op: gt, value: 1 }] }]\n    action: deny\n";
        let edited = edit(source, "tools", "pay", "ask", "", "").unwrap();
        assert!(
            edited.contains("# the cap\n    deny_if:") && edited.contains("approve: {}"),
            "{edited}"
        );
        assert!(!edited.contains("action"), "{edited}");
    }

    #[test]
    fn a_document_that_was_not_edited_is_saved_to_the_byte() {
        for stored in ["a: 1\n", "a: 1", "a: 1\r\nb: 2\r\n", "a: 1\n\n"] {
            let sent = stored.replace("\r\n", "\n").replace('\n', "\r\n");
            assert_eq!(as_stored(&sent, stored), stored);
        }
        assert_eq!(as_stored("a: 2\r\n", "a: 1\r\n"), "a: 2\r\n");
        assert_eq!(as_stored("a: 2\r\n", "a: 1\n"), "a: 2\n");
    }
}
