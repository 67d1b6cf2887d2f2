//! Audit: rows with filters, newest first; the story of one call.

use askama::Template;
use jiff::SignedDuration;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::assets;
use crate::items::Row;
use crate::look::Look as _;
use crate::problem::Problem;
use crate::shell::Shell;
use crate::shown::{Moment, foreign, grouped, shell_word};
use crate::visit::{List, Outcome, Visit, page, part};

/// The filters of the page that the API has too.
const FILTERS: [&str; 9] =
    ["grant", "tool", "server", "decision", "kind", "code", "person", "since", "until"];
const KINDS: [&str; 10] = [
    "intent", "outcome", "denied", "held", "approval", "refused", "admin", "policy", "session",
    "drift",
];
const DECISIONS: [&str; 6] = ["allow", "deny", "hide", "hold", "shadow_deny", "shadow_hold"];

/// Ages that can be chosen.
const AGES: [&str; 4] = ["15m", "1h", "24h", "7d"];
/// How many rows a page shows.
const SHOWN: usize = 100;
/// How many rows a search reads at once, and at most for one page.
const PAGE: usize = 1_000;
const SEARCHED: usize = 10_000;

#[derive(Template)]
#[template(path = "audit.html")]
struct Audit {
    s: Shell,
    assets: &'static str,
    rows: Vec<RowLine>,
    /// The text that is searched for.
    q: String,
    /// How many of the newest rows were searched, if that was not enough to fill the page.
    searched: usize,
    ages: Vec<(&'static str, String)>,
    since: String,
    has_other_age: bool,
    filters: Vec<(&'static str, String)>,
    kinds: Vec<(&'static str, String)>,
    decisions: Vec<(&'static str, String)>,
    kind: String,
    decision: String,
    next: Option<String>,
    is_filtered: bool,
    cli: String,
    export: String,
    as_csv: String,
    as_jsonl: String,
}

/// One row.
pub(crate) struct RowLine {
    pub(crate) seq: String,
    pub(crate) time: Moment,
    pub(crate) kind: String,
    pub(crate) kind_text: String,
    pub(crate) who: String,
    pub(crate) what: String,
    pub(crate) decision: String,
    pub(crate) decision_text: String,
    pub(crate) detail: String,
    pub(crate) href: String,
    pub(crate) count: u64,
}

/// A row as a line of a table.
pub(crate) fn line(s: &Shell, row: &Row) -> RowLine {
    let subject = row.tool.as_deref().or(row.method.as_deref()).unwrap_or_default();
    let what = match row.server.as_deref() {
        Some(server) if !subject.is_empty() => format!("{server}/{subject}"),
        Some(server) => server.to_owned(),
        None => subject.to_owned(),
    };
    let who = row.person.as_deref().map(|person| match row.grant.as_deref() {
        Some(grant) => format!("{person} → {grant}"),
        None => person.to_owned(),
    });
    let who = who.or_else(|| row.grant.clone()).unwrap_or_default();
    let details = [&row.rule, &row.outcome, &row.error_code, &row.message];
    let detail = match row.kind.as_str() {
        "outcome" => row.outcome.clone().or_else(|| row.message.clone()).unwrap_or_default(),
        _ => details.into_iter().flatten().next().cloned().unwrap_or_default(),
    };
    RowLine {
        seq: grouped(row.seq),
        time: Moment::of(Some(&row.time)).unwrap_or_default(),
        kind_text: s.tr(&format!("kind-{}", row.kind)),
        kind: row.kind.clone(),
        who: foreign(&who, 80),
        what: foreign(&what, 120),
        decision_text: row
            .decision
            .as_deref()
            .map(|it| s.tr(&format!("decision-{}", it.replace('_', "-"))))
            .unwrap_or_default(),
        decision: row.decision.clone().unwrap_or_default(),
        detail: foreign(&detail, 160),
        href: row.call_id.as_deref().map(|id| format!("/audit/{}", part(id))).unwrap_or_default(),
        count: row.count.unwrap_or(1),
    }
}

/// The filters of a request, and `more`, as a query of the API.
pub(crate) fn filters(visit: &Visit, more: &[(&str, &str)]) -> String {
    let now = visit.console.admin.now();
    let time =
        |text: &str| age(text).map_or_else(|| text.to_owned(), |age| (now - age).to_string());
    let given = FILTERS.into_iter().filter_map(|name| {
        let value = visit.query.some(name)?;
        let is_time = matches!(name, "since" | "until");
        Some((name, if is_time { time(value) } else { value.to_owned() }))
    });
    let more = more.iter().map(|(name, value)| (*name, (*value).to_owned()));
    encoded(given.chain(more))
}

fn encoded<'n>(pairs: impl Iterator<Item = (&'n str, String)>) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// An age such as `15m`, `2h` or `7d`.
fn age(text: &str) -> Option<SignedDuration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    Some(SignedDuration::from_secs(i64::from(number.parse::<u16>().ok()?) * seconds))
}

/// The rows of one page.
struct Found {
    rows: Vec<Row>,
    /// Where the next page begins.
    next: Option<String>,
    searched: usize,
}

/// The newest rows that match the filters and hold this text, before the row `before`.
async fn search(visit: &Visit, q: &str, before: &str) -> Result<Found, Problem> {
    let (q, limit) = (q.to_lowercase(), if q.is_empty() { SHOWN } else { PAGE });
    let mut found = Found { rows: Vec::new(), next: Some(before.to_owned()), searched: 0 };
    while let Some(before) = found.next.take() {
        let limit = limit.to_string();
        let mut more = vec![("order", "newest"), ("limit", limit.as_str())];
        if !before.is_empty() {
            more.push(("before", &before));
        }
        let target = format!("/api/v1/audit?{}", filters(visit, &more));
        let page: List<Box<RawValue>> = visit.get(&target).await?;
        found.next = page.next;
        for raw in page.items {
            found.searched += 1;
            if !q.is_empty() && !raw.get().to_lowercase().contains(&q) {
                continue;
            }
            let row: Row = visit.read(raw.get().as_bytes())?;
            let seq = row.seq;
            found.rows.push(row);
            if !q.is_empty() && found.rows.len() == SHOWN {
                found.next = Some(seq.to_string());
                return Ok(found);
            }
        }
        if q.is_empty() || found.searched >= SEARCHED {
            break;
        }
    }
    Ok(found)
}

/// The page of rows.
pub(crate) async fn show(visit: Visit) -> Outcome {
    let s = Shell::of(&visit, "audit").await?;
    let given: Vec<(&'static str, String)> = FILTERS
        .into_iter()
        .filter_map(|name| Some((name, visit.query.some(name)?.to_owned())))
        .collect();
    let (q, since) = (visit.query.text("q").to_owned(), visit.query.text("since"));
    let found = search(&visit, &q, visit.query.text("before")).await?;
    // Links keep what the person entered: an age stays one.
    let link = |path: &str, name: &'static str, value: &str| {
        let more = [("q", q.clone()), (name, value.to_owned())];
        let pairs = given.iter().cloned().chain(more).filter(|(_, value)| !value.is_empty());
        format!("{path}?{}", encoded(pairs))
    };
    let next = found.next.as_deref().map(|next| link("/audit", "before", next));
    let flags = given.iter().map(|(name, value)| format!(" --{name} {}", shell_word(value)));
    let flags = flags.collect::<Vec<_>>().concat();
    let words = |prefix: &str, all: &[&'static str]| {
        let one =
            |word: &&'static str| (*word, s.tr(&format!("{prefix}-{}", word.replace('_', "-"))));
        all.iter().map(one).collect::<Vec<_>>()
    };
    page(&Audit {
        assets: &assets::VERSION,
        rows: found.rows.iter().map(|row| line(&s, row)).collect(),
        searched: if q.is_empty() || next.is_none() { 0 } else { found.searched },
        ages: AGES.map(|age| (age, s.tr(&format!("age-{age}")))).to_vec(),
        since: since.to_owned(),
        has_other_age: !since.is_empty() && !AGES.contains(&since),
        filters: ["grant", "tool", "server", "person", "code"]
            .into_iter()
            .map(|name| (name, visit.query.text(name).to_owned()))
            .collect(),
        kinds: words("kind", &KINDS),
        decisions: words("decision", &DECISIONS),
        kind: visit.query.text("kind").to_owned(),
        decision: visit.query.text("decision").to_owned(),
        next,
        is_filtered: !given.is_empty() || !q.is_empty(),
        cli: format!("toolgate audit list{flags}"),
        as_csv: link("/audit/export", "format", "csv"),
        as_jsonl: link("/audit/export", "format", "jsonl"),
        q,
        export: format!("toolgate audit export -o csv{flags}"),
        s,
    })
}

#[derive(Template)]
#[template(path = "call.html")]
struct CallPage {
    s: Shell,
    assets: &'static str,
    id: String,
    title: String,
    tool_href: String,
    facts: Vec<(String, String)>,
    steps: Vec<Step>,
    hashes: Vec<(String, String)>,
}

/// One row of the story.
struct Step {
    time: Moment,
    kind: String,
    title: String,
    decision: String,
    lines: Vec<(String, String)>,
}

/// The story of one call.
pub(crate) async fn call(visit: Visit) -> Outcome {
    let s = Shell::of(&visit, "audit").await?;
    let id = visit.param("call_id").to_owned();
    let rows: List<Row> = visit.get(&format!("/api/v1/audit/{}", part(&id))).await?;
    let empty = Row::default();
    let first = rows.items.first().unwrap_or(&empty);
    let (server, tool) = (first.server.as_deref(), first.tool.as_deref());
    let fact = |key: &str, value: &Option<String>| {
        Some((s.tr(&format!("field-{key}")), foreign(value.as_deref()?, 200)))
    };
    let facts = [
        fact("grant", &first.grant),
        fact("identity", &first.identity),
        fact("person", &first.person),
        fact("client", &first.client),
        fact("via", &first.via),
        fact("session", &first.session_id),
        first.risk.as_deref().map(|class| (s.tr("field-class"), s.class_text(class))),
        fact("approval", &first.approval_id),
    ];
    let policy = first.policy.as_deref().map(|name| {
        let version = first.policy_version.map(|v| format!(" v{v}")).unwrap_or_default();
        (s.tr("field-policy"), format!("{name}{version}"))
    });
    page(&CallPage {
        assets: &assets::VERSION,
        title: match (server, tool.or(first.method.as_deref())) {
            (Some(server), Some(tool)) => foreign(&format!("{server}/{tool}"), 200),
            _ => id.clone(),
        },
        tool_href: match (server, tool) {
            (Some(server), Some(tool)) => format!("/tools/{}/{}", part(server), part(tool)),
            _ => String::new(),
        },
        id,
        facts: facts.into_iter().flatten().chain(policy).collect(),
        steps: rows.items.iter().map(|row| step(&s, row)).collect(),
        hashes: rows.items.iter().map(|row| (grouped(row.seq), row.hash.clone())).collect(),
        s,
    })
}

fn step(s: &Shell, row: &Row) -> Step {
    let mut lines = Vec::new();
    let mut add = |key: &str, value: Option<String>| {
        lines.extend(value.map(|value| (s.tr(&format!("field-{key}")), foreign(&value, 2_000))));
    };
    // Who answered or changed something; who called is among the facts above.
    add("person", row.person.clone().filter(|_| matches!(row.kind.as_str(), "approval" | "admin")));
    add("rule", row.rule.clone());
    add("code", row.error_code.clone());
    add("outcome", row.outcome.clone());
    add("effect", row.effect.clone());
    add("counters", counters(&row.counters));
    add("argument-names", json_text(&row.argument_keys));
    add("arguments", json_text(&row.arguments));
    add("upstream", row.upstream_ms.map(|ms| format!("{ms} ms")));
    add("total", row.total_ms.map(|ms| format!("{ms} ms")));
    add("message", row.message.clone());
    add("count", row.count.map(|count| count.to_string()));
    Step {
        time: Moment::of(Some(&row.time)).unwrap_or_default(),
        title: s.tr(&format!("story-{}", row.kind)),
        kind: row.kind.clone(),
        decision: row.decision.clone().unwrap_or_default(),
        lines,
    }
}

/// `close_rate 3 → 4`.
fn counters(value: &Value) -> Option<String> {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let parsed = value.as_str().and_then(|text| serde_json::from_str(text).ok());
    let all = parsed.as_ref().unwrap_or(value).as_array()?.clone();
    let one = |it: &Value| {
        format!(
            "{} {} → {}",
            plain(it.at("counter")),
            plain(it.at("before")),
            plain(it.at("after"))
        )
    };
    let text = all.iter().map(one).collect::<Vec<_>>().join(", ");
    (!text.is_empty()).then_some(text)
}

fn json_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(all) if all.iter().all(Value::is_string) => {
            Some(all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "))
        }
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_a_number_and_a_unit() {
        let cases = [("15m", Some(900)), ("24h", Some(86_400)), ("7d", Some(604_800))];
        for (text, seconds) in cases {
            assert_eq!(age(text), seconds.map(SignedDuration::from_secs), "{text}");
        }
        for text in ["", "m", "-1h", "7", "99999d", "1w", "2026-11-19T00:00:00Z", "ж"] {
            assert_eq!(age(text), None, "{text}");
        }
    }
}
