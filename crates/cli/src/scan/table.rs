//! The result of a scan for people.

use toolgate_control::visible;

use super::report::{Report, Scanned, ScannedTool, remarks};
use crate::table::{Column, Cut, render, terminal_width};

const COLUMNS: &[Column] = &[
    Column { head: "LEVEL", cut: Cut::Never },
    Column { head: "CLASS", cut: Cut::Never },
    Column { head: "TOOL", cut: Cut::Never },
    Column { head: "PARAMETERS", cut: Cut::Never },
    Column { head: "REASON", cut: Cut::End },
];

pub(super) fn text(report: &Report) -> String {
    let mut out = String::new();
    for (at, server) in report.servers.iter().enumerate() {
        if report.many {
            let gap = if at == 0 { "" } else { "\n" };
            out += &visible(&format!("{gap}{}\n", server.name));
        }
        out += &of_server(server, report.nothing());
    }
    let remarks = remarks(report);
    if !remarks.is_empty() {
        out.push('\n');
    }
    for remark in remarks {
        out += &visible(&remark);
        out.push('\n');
    }
    out
}

fn of_server(server: &Scanned, nothing: &str) -> String {
    match &server.tools {
        Err(why) => visible(&format!("cannot be scanned: {why}\n")),
        Ok(tools) if tools.is_empty() => format!("{nothing}\n"),
        Ok(tools) => of_tools(tools),
    }
}

fn of_tools(tools: &[ScannedTool]) -> String {
    let cells = |tool: &ScannedTool| {
        let change = tool.change.map(|change| format!("{change}: ")).unwrap_or_default();
        vec![
            tool.level().as_str().to_owned(),
            tool.assessment.class.as_str().to_owned(),
            one_line(&tool.name),
            tool.counts(),
            one_line(&format!("{change}{}", tool.reason())),
        ]
    };
    let rows: Vec<Vec<String>> = tools.iter().map(cells).collect();
    render(COLUMNS, &rows, terminal_width())
}

fn one_line(text: &str) -> String {
    visible(&text.replace(['\n', '\r', '\t'], " "))
}
