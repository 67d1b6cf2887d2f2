//! Rows as people read them, within 100 columns.

use toolgate_audit::Row;
use toolgate_control::visible;

/// Time, kind, grant, server, tool, decision, outcome; the rule takes what is left.
const WIDTHS: [usize; 7] = [14, 8, 8, 8, 13, 11, 14];
const RULE: usize = 17;

pub(super) fn head() -> String {
    line(["TIME (UTC)", "KIND", "GRANT", "SERVER", "TOOL", "DECISION", "OUTCOME"], "RULE")
}

pub(super) fn row(row: &Row) -> String {
    let d = &row.draft;
    let time = d.time.strftime("%m-%d %H:%M:%S").to_string();
    let text = |field: &Option<std::sync::Arc<str>>| visible(field.as_deref().unwrap_or("-"));
    let (grant, server, tool) = (text(&d.grant), text(&d.server), text(&d.tool));
    if let (None, Some(message)) = (&d.tool, &d.message) {
        // It tells of no call: what it tells takes the place of what calls have.
        let whose = d.session_id.as_ref().map(|id| format!("{id}: ")).unwrap_or_default();
        let told = visible(&format!("{whose}{message}"));
        return told_of([&time, d.kind.as_str(), &grant, &server], &told);
    }
    let decision = d.decision.map_or("-", |decision| decision.as_str());
    let outcome = d.outcome.map_or("-", |outcome| outcome.as_str());
    line([&time, d.kind.as_str(), &grant, &server, &tool, decision, outcome], &text(&d.rule))
}

fn line(cells: [&str; 7], rule: &str) -> String {
    let line: String = padded(&cells).chain([end(&rule.replace('\n', " "), RULE)]).collect();
    format!("{}\n", line.trim_end())
}

/// A row with words instead of the last columns.
fn told_of(cells: [&str; 4], told: &str) -> String {
    let left = WIDTHS.iter().skip(cells.len()).map(|width| width + 1).sum::<usize>() + RULE;
    let line: String = padded(&cells).chain([begin(&told.replace('\n', " "), left)]).collect();
    format!("{}\n", line.trim_end())
}

fn padded(cells: &[&str]) -> impl Iterator<Item = String> {
    cells.iter().zip(WIDTHS).map(|(cell, width)| {
        let cell = begin(&cell.replace('\n', " "), width);
        format!("{cell:<width$} ")
    })
}

fn begin(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// The end of a rule tells more than its beginning.
fn end(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    std::iter::once('…').chain(text.chars().skip(length + 1 - width)).collect()
}
