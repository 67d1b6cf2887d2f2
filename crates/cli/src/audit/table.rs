//! Rows as people read them, within 100 columns.

use toolgate_audit::Row;

use crate::policy::visible;

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
    let decision = d.decision.map_or("-", |decision| decision.as_str());
    let outcome = d.outcome.map_or("-", |outcome| outcome.as_str());
    line([&time, d.kind.as_str(), &grant, &server, &tool, decision, outcome], &text(&d.rule))
}

fn line(cells: [&str; 7], rule: &str) -> String {
    let cells = cells.into_iter().zip(WIDTHS).map(|(cell, width)| {
        let cell = begin(&cell.replace('\n', " "), width);
        format!("{cell:<width$} ")
    });
    let line: String = cells.chain([end(&rule.replace('\n', " "), RULE)]).collect();
    format!("{}\n", line.trim_end())
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
