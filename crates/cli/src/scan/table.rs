//! The result of a scan for people.

use toolgate_control::visible;

use super::report::{Report, Scanned, ScannedTool, remarks};

const HEAD: [&str; 5] = ["LEVEL", "CLASS", "TOOL", "PARAMETERS", "REASON"];

pub(super) fn text(report: &Report) -> String {
    let mut out = String::new();
    for (at, server) in report.servers.iter().enumerate() {
        if report.many {
            let gap = if at == 0 { "" } else { "\n" };
            out += &visible(&format!("{gap}{}\n", server.name));
        }
        out += &of_server(server);
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

fn of_server(server: &Scanned) -> String {
    match &server.tools {
        Err(why) => visible(&format!("cannot be scanned: {why}\n")),
        Ok(tools) if tools.is_empty() => "no tools\n".to_owned(),
        Ok(tools) => of_tools(tools),
    }
}

fn of_tools(tools: &[ScannedTool]) -> String {
    let cells = |tool: &ScannedTool| {
        let change = tool.change.map(|change| format!("{change}: ")).unwrap_or_default();
        [
            tool.level().as_str().to_owned(),
            tool.assessment.class.as_str().to_owned(),
            one_line(&tool.name),
            tool.arguments(),
            one_line(&format!("{change}{}", tool.reason())),
        ]
    };
    let rows: Vec<[String; 5]> =
        std::iter::once(HEAD.map(str::to_owned)).chain(tools.iter().map(cells)).collect();
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..HEAD.len()).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &[String; 5]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

fn one_line(text: &str) -> String {
    visible(&text.replace(['\n', '\r', '\t'], " "))
}
