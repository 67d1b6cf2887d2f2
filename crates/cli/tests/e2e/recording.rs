//! Recordings of the terminal for the documentation, as SVG: what a test has seen printed.
//!
//! `UPDATE=1 cargo test -p toolgate --test e2e recording` writes them again.

use std::fmt::Write as _;
use std::fs;

use crate::gate::Home;
use crate::golden;

/// Longer lines are broken at a blank.
const COLUMNS: usize = 100;
const LINE: usize = 20;

/// Compares with `docs/screenshots/<name>.svg`.
#[track_caller]
pub(crate) fn check(name: &str, command: &str, printed: &str) {
    golden::check(&format!("../../../../docs/screenshots/{name}.svg"), &svg(command, printed));
}

fn svg(command: &str, printed: &str) -> String {
    let lines: Vec<String> = std::iter::once(format!("$ {command}"))
        .chain(printed.trim_end().lines().flat_map(broken))
        .collect();
    let (width, height) = (COLUMNS * 9 + 40, lines.len() * LINE + 30);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <title>{}</title>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16181d\"/>\n\
         <g font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"15\">\n",
        escaped(command)
    );
    // Blanks at the start of a text would be left out.
    for (number, line) in lines.iter().enumerate() {
        let colour = match line.chars().next() {
            Some('$') => "#8ab4f8",
            Some('+') => "#7ee2a8",
            Some('-') => "#f28b82",
            _ => "#e3e5e8",
        };
        let y = 30 + number * LINE;
        writeln!(
            text,
            "<text x=\"20\" y=\"{y}\" fill=\"{colour}\">{}</text>",
            escaped(line).replace(' ', "\u{a0}")
        )
        .unwrap();
    }
    text.push_str("</g>\n</svg>\n");
    text
}

/// A line in parts that fit; the parts after the first are indented.
fn broken(line: &str) -> Vec<String> {
    let (mut parts, mut part) = (Vec::new(), String::new());
    for word in line.split_inclusive(' ') {
        if part.chars().count() + word.trim_end().chars().count() > COLUMNS {
            parts.push(std::mem::replace(&mut part, "    ".to_owned()));
        }
        part.push_str(word);
    }
    parts.push(part);
    parts.into_iter().map(|part| part.trim_end().to_owned()).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

const HELD: &str = r#"{
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "server-files"] } // mine
  }
}
"#;

#[test]
fn recording_of_a_connected_client() {
    let home = Home::new();
    fs::write(home.path("mcp.json"), HELD).unwrap();
    let words = ["client", "connect", "cursor", "--file", "mcp.json", "--dry-run"];
    let output = home.run(&words);
    let printed = [output.stdout, output.stderr].concat();
    let command = format!("toolgate {}", words.join(" "));
    check("client-connect", &command, &String::from_utf8(printed).unwrap());
}

#[test]
fn long_lines_are_broken_and_signs_are_escaped() {
    let line = format!("{} {}", "a".repeat(60), "b".repeat(60));
    assert_eq!(broken(&line), ["a".repeat(60), format!("    {}", "b".repeat(60))]);
    let text = svg("x <y>", "+ a & b\n- c\n");
    assert!(
        text.contains("x\u{a0}&lt;y&gt;")
            && text.contains("a\u{a0}&amp;\u{a0}b")
            && text.contains("#f28b82")
    );
}
