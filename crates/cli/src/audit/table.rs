//! Audit rows as a table for people.

use std::sync::Arc;

use toolgate_audit::{Decision, Row};
use toolgate_control::visible;

use crate::table::{Column, Cut, Layout};

/// How many characters of a call's id are shown: its time and enough random digits to be unique.
const CALL: usize = 18;

const COLUMNS: &[Column] = &[
    Column { head: "SEQ", cut: Cut::Never },
    Column { head: "TIME (UTC)", cut: Cut::Never },
    Column { head: "KIND", cut: Cut::Never },
    Column { head: "CALL", cut: Cut::Never },
    Column { head: "WHO", cut: Cut::End },
    Column { head: "SERVER", cut: Cut::End },
    Column { head: "TOOL", cut: Cut::End },
    Column { head: "RESULT", cut: Cut::Never },
    Column { head: "CODE", cut: Cut::End },
    Column { head: "RULE OR MESSAGE", cut: Cut::Start },
];

/// The layout of a table of rows.
pub(super) struct RowTable(Layout);

impl RowTable {
    /// Fits the table to these rows and to the terminal.
    pub(super) fn new(rows: &[Row], width: Option<usize>) -> Self {
        let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
        Self(Layout::new(COLUMNS, &cells, width))
    }

    pub(super) fn head(&self) -> String {
        self.0.head()
    }

    pub(super) fn line(&self, row: &Row) -> String {
        self.0.line(&cells(row))
    }
}

fn cells(row: &Row) -> Vec<String> {
    let d = &row.draft;
    let text = |field: &Option<Arc<str>>| field.as_deref().map(one_line);
    let shown = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let call = d.call_id.map(|id| id.to_string().chars().take(CALL).collect());
    let who = text(&d.person).or_else(|| text(&d.grant));
    let server = match (text(&d.server), text(&d.session_id)) {
        (Some(server), Some(session)) => Some(format!("{server}/{session}")),
        (server, session) => server.or(session),
    };
    let result = match (d.outcome, d.decision) {
        (Some(outcome), _) => Some(outcome.as_str()),
        (None, decision) => decision.map(Decision::as_str),
    };
    let count = d.count.map(|count| format!(" ×{count}")).unwrap_or_default();
    vec![
        row.seq.to_string(),
        d.time.strftime("%m-%d %H:%M:%S").to_string(),
        d.kind.as_str().to_owned(),
        shown(call),
        shown(who),
        shown(server),
        shown(text(&d.tool).or_else(|| text(&d.method))),
        format!("{}{count}", result.unwrap_or("-")),
        shown(text(&d.error_code)),
        shown(text(&d.rule).or_else(|| text(&d.message))),
    ]
}

fn one_line(text: &str) -> String {
    visible(&text.replace('\n', " "))
}
