//! What follows from a document: problems, choices, sentences, and what it would change.

use askama::Template;
use axum::http::{HeaderValue, Method, header};
use axum::response::IntoResponse as _;
use serde_json::{Map, Value, json};
use toolgate_policy::RuleLines;

use super::choices::{CLASSES, Choice, class_choices, tool_choice};
use super::conditions::{ConditionEdit, edit_condition};
use super::edit::{edit, edit_amount, normal_lines, tree};
use super::versions::{DiffLine, diff};
use crate::items::{Checked, Difference, Finding, Outlook, Plan, PolicyText};
use crate::look::Look as _;
use crate::problem::Problem;
use crate::sentences::{Sentence, sentences};
use crate::shell::Shell;
use crate::shown::foreign;
use crate::visit::{Outcome, Visit, part};

/// How many tools the builder shows.
const MOST: usize = 2_000;
/// How many sentences it shows.
const MOST_SAID: usize = 500;
/// How many decisions that differ it shows.
const MOST_CHANGED: usize = 500;

/// The parts that follow from the document.
#[derive(Template)]
#[template(path = "draft.html")]
struct DraftPart {
    s: Shell,
    d: Draft,
}

/// One row of the builder.
#[derive(Template)]
#[template(path = "choice.html")]
struct ChoicePart<'a> {
    s: &'a Shell,
    it: &'a Choice,
}

/// A problem, and the line that it is in.
pub(crate) struct Problematic {
    pub(crate) found: Finding,
    /// The line, cut if it is long, and spaces up to the place; empty without a place.
    pub(crate) line: String,
    pub(crate) indent: String,
}

/// What follows from a document.
pub(crate) struct Draft {
    pub(crate) is_valid: bool,
    pub(crate) problems: Vec<Problematic>,
    /// The rows of the builder are here; else the page has them already.
    pub(crate) has_builder: bool,
    pub(crate) classes: Vec<Choice>,
    pub(crate) tools: Vec<Choice>,
    pub(crate) sentences: Vec<(Sentence, usize)>,
    /// How many sentences are left out.
    pub(crate) more_said: usize,
    pub(crate) differences: Vec<Changed>,
    /// How many of them are left out.
    pub(crate) more_differences: usize,
    pub(crate) resets: Vec<String>,
    pub(crate) compared: usize,
    /// How a document that is not stored here differs, to paste.
    pub(crate) diff: Vec<DiffLine>,
}

/// One decision that a draft changes.
pub(crate) struct Changed {
    pub(crate) grant: String,
    pub(crate) tool: String,
    pub(crate) before: String,
    pub(crate) before_text: String,
    pub(crate) before_terms: Vec<String>,
    pub(crate) after: String,
    pub(crate) after_text: String,
    pub(crate) after_terms: Vec<String>,
}

/// Everything that follows from a document in place of this policy.
pub(crate) async fn draft_of(
    visit: &Visit,
    s: &Shell,
    policy: &PolicyText,
    document: &str,
) -> Result<Draft, Problem> {
    let path = part(&policy.item.name);
    let is_pasted = policy.item.source == "file" && policy.document != document;
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
    let json = tree(document);
    let mut said = if checked.valid { sentences(visit.language, &json) } else { Vec::new() };
    let more_said = said.len().saturating_sub(MOST_SAID);
    said.truncate(MOST_SAID);
    let places = RuleLines::of(document);
    let said = said.into_iter().map(|sentence| {
        let line = places.as_ref().and_then(|places| places.line(&sentence.rule));
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
        problems: checked.problems.into_iter().map(|it| pointed(document, it)).collect(),
        has_builder: true,
        classes: class_choices(s, &json),
        tools: checked
            .tools
            .iter()
            .take(MOST)
            .enumerate()
            .map(|(number, tool)| tool_choice(s, &json, tool, number + CLASSES.len()))
            .collect(),
        sentences: said.collect(),
        more_said,
        more_differences: plan.differences.len().saturating_sub(MOST_CHANGED),
        differences: plan.differences.iter().take(MOST_CHANGED).map(|it| changed(s, it)).collect(),
        resets: plan.resets.iter().map(reset).collect(),
        compared: plan.compared,
        diff: if is_pasted { diff(&policy.document, document) } else { Vec::new() },
    })
}

/// How much of a line is shown before a problem, and in all.
const BEFORE: usize = 60;
const SHOWN: usize = 120;

/// A problem with its line and the place of the caret. Every character is one column wide.
fn pointed(document: &str, found: Finding) -> Problematic {
    let line = found.line.checked_sub(1).and_then(|at| document.lines().nth(at));
    let Some(line) = line.filter(|_| found.column > 0) else {
        return Problematic { found, line: String::new(), indent: String::new() };
    };
    let at = found.column - 1;
    let from = at.saturating_sub(BEFORE);
    let cut: String = line.chars().skip(from).take(SHOWN).collect();
    let cut = cut.replace(|c: char| c.is_whitespace() || c.is_control(), " ");
    Problematic { found, line: foreign(&cut, SHOWN), indent: " ".repeat(at - from) }
}

fn changed(s: &Shell, it: &Difference) -> Changed {
    let text = |it: &Outlook| {
        let effect = s.tr(&format!("effect-{}", it.effect));
        let limits = it.limits.iter().cloned();
        std::iter::once(effect).chain(limits).collect::<Vec<_>>().join(", ")
    };
    // Terms that both have say nothing about the difference.
    let only = |one: &Outlook, other: &Outlook| {
        let own = one.terms.iter().filter(|term| !other.terms.contains(term));
        own.map(|term| foreign(term, 300)).collect()
    };
    Changed {
        grant: it.grant.clone(),
        tool: foreign(&format!("{}/{}", it.server, it.tool), 160),
        before_text: text(&it.before),
        before: it.before.effect.clone(),
        before_terms: only(&it.before, &it.after),
        after_text: text(&it.after),
        after: it.after.effect.clone(),
        after_terms: only(&it.after, &it.before),
    }
}

/// A draft: the document of the form, after the edit that the form describes, and what follows from it.
pub(crate) async fn draft(visit: Visit) -> Outcome {
    let form = &visit.form;
    let document = normal_lines(form.raw("document"));
    let section = form.text("section");
    let edited = match form.some("key") {
        None => Ok(document.clone()),
        Some(key) if form.has("list") => {
            let wanted = ConditionEdit {
                list: form.text("list"),
                at: form.text("at"),
                path: form.text("path"),
                op: form.text("op"),
                value: form.text("value"),
                is_removed: form.text("effect") == "remove",
            };
            edit_condition(&document, (section, key), wanted)
        }
        Some(key) if form.text("effect") == "amount" => {
            let (at, max) = (form.text("at"), form.text("max"));
            edit_amount(&document, (section, key), at, max, form.text("window"))
        }
        Some(key) => edit(
            &document,
            section,
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
    let target = format!("/api/v1/policies/{}", part(visit.param("name")));
    let policy: PolicyText = visit.get(&target).await?;
    let mut d = draft_of(&visit, &s, &policy, &document).await?;
    // A page that has the same rows gets only those that differ from what it shows.
    let marks: Vec<&str> = form.text("marks").split(' ').collect();
    let rows = d.classes.len() + d.tools.len();
    let mut fresh = Map::new();
    if d.is_valid && marks.len() == rows {
        for (choice, mark) in d.classes.iter().chain(&d.tools).zip(&marks) {
            if choice.mark() != *mark {
                let html = ChoicePart { s: &s, it: choice }.render()?;
                fresh.insert(choice.number.to_string(), html.into());
            }
        }
        (d.classes, d.tools, d.has_builder) = (Vec::new(), Vec::new(), false);
    }
    let is_part = !d.has_builder;
    let html = DraftPart { s, d }.render()?;
    let choices = if is_part { Value::Object(fresh) } else { Value::Null };
    let body = json!({ "document": document, "html": html, "choices": choices, "error": error });
    let body = body.to_string();
    let kind = HeaderValue::from_static("application/json");
    Ok(([(header::CONTENT_TYPE, kind)], body).into_response())
}
