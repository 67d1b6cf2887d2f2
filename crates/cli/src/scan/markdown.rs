//! The result of a scan for pull requests.

use toolgate_catalog::draw;

use super::report::{Report, ScannedTool, remarks};

pub(super) fn text(report: &Report) -> String {
    let mut out = String::from("# Tools\n");
    for server in &report.servers {
        out += &["\n## ", &cell(&server.name), "\n\n"].concat();
        match &server.tools {
            Err(why) => out += &["Cannot be scanned: ", &cell(&why.to_string()), "\n"].concat(),
            Ok(tools) if tools.is_empty() => out += &["(", report.nothing(), ")\n"].concat(),
            Ok(tools) => {
                out += "| tool | class | level | parameters | reason |\n|---|---|---|---|---|\n";
                out.extend(tools.iter().map(row));
            }
        }
    }
    let remarks = remarks(report);
    if !remarks.is_empty() {
        out += "\n## Together\n\n";
        out.extend(remarks.iter().map(|remark| format!("* {}\n", cell(remark))));
    }
    out
}

fn row(tool: &ScannedTool) -> String {
    let change = tool.change.map(|change| format!("{change}: ")).unwrap_or_default();
    format!(
        "| {} | {} | {} | {} | {} |\n",
        cell(&tool.name),
        tool.assessment.class.as_str(),
        tool.level().as_str(),
        tool.counts(),
        cell(&format!("{change}{}", tool.reason())),
    )
}

/// A text that cannot leave its cell or become markup; backticks of reasons stay.
fn cell(text: &str) -> String {
    let mut out = String::new();
    for c in draw(text).chars() {
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            '|' | '<' | '>' | '*' | '_' | '[' | ']' | '#' | '!' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}
