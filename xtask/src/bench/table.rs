//! Shows the figures: on the terminal, and in the documentation between two markers.

use std::fs;
use std::io::{Write as _, stdout};
use std::path::Path;

use anyhow::{Context as _, Result};

/// One measurement.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) what: String,
    pub(super) aim: String,
    pub(super) result: String,
    pub(super) spread: String,
    /// The figures themselves: direct, bare proxy, toolgate.
    pub(super) ways: [String; 3],
    /// Processor time per call, bare and toolgate.
    pub(super) processor: String,
    pub(super) verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Met,
    Missed,
    NoAim,
    /// It could not be measured, with the reason.
    Invalid(String),
}

#[derive(Debug, Default)]
pub(super) struct Table(Vec<Row>);

const HEADS: [&str; 9] = [
    "measurement",
    "aim",
    "result",
    "spread",
    "direct",
    "bare",
    "toolgate",
    "processor time a call, bare → toolgate",
    "verdict",
];
const BEGIN: &str = "<!-- figures: written by `cargo xtask bench`, do not edit -->\n";
const END: &str = "<!-- end of figures -->";

impl Verdict {
    pub(super) fn of(met: bool) -> Self {
        if met { Self::Met } else { Self::Missed }
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::Met => "met".into(),
            Self::Missed => "MISSED".into(),
            Self::NoAim => String::new(),
            Self::Invalid(why) => format!("INVALID: {why}"),
        }
    }
}

impl Table {
    pub(super) fn push(&mut self, row: Row) {
        self.0.push(row);
    }

    /// Whether everything could be measured.
    pub(super) fn is_valid(&self) -> bool {
        !self.0.iter().any(|row| matches!(row.verdict, Verdict::Invalid(_)))
    }

    /// The table in Markdown.
    pub(super) fn text(&self) -> String {
        let rows: Vec<_> = self.0.iter().map(Row::cells).collect();
        padded(&HEADS.map(str::to_owned), &rows)
    }
}

/// A table in Markdown, padded so that it reads well on a terminal too.
pub(super) fn padded<const N: usize>(heads: &[String; N], rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for line in std::iter::once(heads).chain(rows) {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.chars().count().max(*width);
        }
    }
    let rule = widths.map(|width| "-".repeat(width));
    let mut text = String::new();
    for line in [heads, &rule].into_iter().chain(rows) {
        let cells = line.iter().zip(widths).map(|(cell, width)| format!("| {cell:width$} "));
        text.extend(cells);
        text.push_str("|\n");
    }
    text
}

impl Row {
    /// The row of a measurement that failed.
    pub(super) fn invalid(what: &str, why: &anyhow::Error) -> Self {
        let [aim, result, spread, processor] = [const { String::new() }; 4];
        let verdict = Verdict::Invalid(format!("{why:#}"));
        Self {
            what: what.to_owned(),
            aim,
            result,
            spread,
            ways: Default::default(),
            processor,
            verdict,
        }
    }

    /// The same as a figure without an aim.
    pub(super) fn without_aim(self) -> Self {
        Self { aim: String::new(), verdict: Verdict::NoAim, ..self }
    }

    fn cells(&self) -> [String; HEADS.len()] {
        let [direct, bare, toolgate] = self.ways.clone();
        let Self { what, aim, result, spread, processor, verdict, .. } = self.clone();
        [what, aim, result, spread, direct, bare, toolgate, processor, verdict.text()]
    }
}

/// Replaces the text between the markers of a page.
pub(super) fn write_into(page: &Path, machine: &str, table: &Table) -> Result<()> {
    write_between(page, BEGIN, END, &format!("\n{machine}\n\n{}\n", table.text()))
}

/// Replaces the text between two lines of a page.
pub(super) fn write_between(page: &Path, begin: &str, end: &str, new: &str) -> Result<()> {
    let name = page.display();
    let text = fs::read_to_string(page).with_context(|| format!("reading {name}"))?;
    let (before, rest) =
        text.split_once(begin).with_context(|| format!("{name} has no line `{}`", begin.trim()))?;
    let (_, after) = rest.split_once(end).with_context(|| format!("{name} has no line `{end}`"))?;
    fs::write(page, format!("{before}{begin}{new}{end}{after}"))?;
    Ok(())
}

/// Prints a line; a closed terminal does not stop the measurement.
pub(super) fn say(text: &str) {
    drop(writeln!(stdout(), "{text}"));
}
