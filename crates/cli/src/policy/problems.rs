//! Problems of documents, for people and programs.

use serde::Serialize;
use toolgate_control::visible;
use toolgate_policy::{Problem, Severity};

use super::source::Source;
use crate::print;

/// Every problem with its position, source line and hint.
pub(super) fn text(source: &Source, problems: &[Problem]) -> String {
    let shown: Vec<String> =
        problems.iter().map(|p| p.render(source.shown(), &source.text)).collect();
    visible(&shown.join("\n"))
}

/// Prints problems to stderr, for verbs that produce no result then.
pub(super) fn refuse(source: &Source, problems: &[Problem]) {
    print::err(&text(source, problems));
    print::err(&format!("\n{}\n{}", summary(source, problems), pointer(problems)));
}

/// Where to read about the first problem.
pub(super) fn pointer(problems: &[Problem]) -> String {
    crate::explain::pointer(problems.iter().map(|problem| problem.code.as_str()))
}

/// One line: valid or not, and how many problems there are.
pub(super) fn summary(source: &Source, problems: &[Problem]) -> String {
    let count = |severity| problems.iter().filter(|p| p.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let file = source.shown();
    match (errors, warnings) {
        (0, 0) => format!("{file} is valid"),
        (0, warnings) => format!("{file} is valid, with {}", number(warnings, "warning")),
        (errors, 0) => format!("{file} is not valid: {}", number(errors, "error")),
        (errors, warnings) => format!(
            "{file} is not valid: {} and {}",
            number(errors, "error"),
            number(warnings, "warning")
        ),
    }
}

/// The JSON object of one file.
#[derive(Serialize)]
pub(super) struct Judgement<'a> {
    file: &'a str,
    valid: bool,
    problems: &'a [Problem],
}

impl<'a> Judgement<'a> {
    pub(super) fn new(source: &'a Source, problems: &'a [Problem]) -> Self {
        let valid = problems.iter().all(|p| p.severity != Severity::Error);
        Self { file: &source.file, valid, problems }
    }
}

/// `1 test`, `2 tests`.
pub(crate) fn number(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
