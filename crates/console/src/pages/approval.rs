//! One held call, with everything that a person needs to decide it.

use askama::Template;
use serde::Deserialize;
use serde_json::Value;

use crate::assets;
use crate::items::Row;
use crate::pages::approvals::{Held, Item, held};
use crate::pages::audit::{RowLine, line};
use crate::pages::limit_use::{LimitLine, LimitUse};
use crate::shell::Shell;
use crate::shown::{Moment, foreign};
use crate::texts::number;
use crate::visit::{Outcome, Visit, page, part};

#[derive(Template)]
#[template(path = "approval.html")]
struct ApprovalPage {
    s: Shell,
    assets: &'static str,
    held: Held,
    /// Who may answer.
    asked: String,
    /// Whether the effect can be undone.
    undo: String,
    level_text: String,
    expires: Option<Moment>,
    answers: Vec<AnswerLine>,
    limits: Vec<LimitLine>,
    differs: Option<Differs>,
    recent: Vec<RowLine>,
    /// The names of arguments that similar calls can be required to keep.
    keep: Vec<String>,
}

#[derive(Deserialize)]
struct Detail {
    level: Option<String>,
    recent: Vec<Row>,
    limits: Vec<LimitUse>,
    differs: Option<Difference>,
    answers: Vec<Answer>,
}

#[derive(Deserialize)]
struct Answer {
    person: String,
    #[serde(rename = "answer")]
    word: String,
    at: String,
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Difference {
    since: String,
    added: Vec<String>,
    removed: Vec<String>,
    changed: Vec<String>,
}

struct AnswerLine {
    person: String,
    is_approval: bool,
    at: Option<Moment>,
    reason: String,
}

/// How the arguments differ from those of the last approved call.
struct Differs {
    href: String,
    added: String,
    removed: String,
    changed: String,
    is_same: bool,
}

/// The page.
pub(crate) async fn show(visit: Visit) -> Outcome {
    let s = Shell::of(&visit, "approvals").await?;
    let target = format!("/api/v1/approvals/{}", part(visit.param("id")));
    let body = visit.call(&axum::http::Method::GET, &target, bytes::Bytes::new()).await?;
    // Raw arguments cannot be read from a part of a struct.
    let (item, detail): (Item, Detail) = (visit.read(&body)?, visit.read(&body)?);
    let level = detail.level.as_deref().map(|level| s.tr(&format!("level-{level}")));
    let answers = detail.answers.iter().map(|it| AnswerLine {
        person: foreign(&it.person, 80),
        is_approval: it.word == "approve",
        at: Moment::of(Some(&it.at)),
        reason: foreign(it.reason.as_deref().unwrap_or_default(), 512),
    });
    page(&ApprovalPage {
        assets: &assets::VERSION,
        asked: asked(&s, &item),
        undo: s.tr(&format!("undo-{}", item.class)),
        level_text: level.unwrap_or_default(),
        expires: Moment::of(Some(&item.expires)),
        answers: answers.collect(),
        limits: detail.limits.iter().map(LimitUse::line).collect(),
        differs: detail.differs.as_ref().map(Differs::of),
        recent: detail.recent.iter().map(|row| line(&s, row)).collect(),
        keep: names(&item),
        held: held(&visit, &s, &item),
        s,
    })
}

/// Who may answer, in words.
fn asked(s: &Shell, item: &Item) -> String {
    let groups = match item.approvers.as_slice() {
        [] => s.tr("approval-any-approver"),
        groups => s.trv("approval-groups", groups.join(", ")),
    };
    let values = [("n", number(item.people)), ("value", groups.into())];
    s.language.text("approval-people", &values)
}

/// The names of the arguments, as far as paths can name them.
fn names(item: &Item) -> Vec<String> {
    let arguments = item.arguments.as_ref().map(|raw| raw.get()).unwrap_or_default();
    let parsed: Value = serde_json::from_str(arguments).unwrap_or_default();
    let names = parsed.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let is_plain = |name: &&str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    names.filter(is_plain).take(24).map(str::to_owned).collect()
}

impl Differs {
    fn of(difference: &Difference) -> Self {
        let list = |names: &[String]| foreign(&names.join(", "), 400);
        let all = [&difference.added, &difference.removed, &difference.changed];
        Self {
            href: format!("/approvals/{}", part(&difference.since)),
            added: list(&difference.added),
            removed: list(&difference.removed),
            changed: list(&difference.changed),
            is_same: all.iter().all(|names| names.is_empty()),
        }
    }
}
