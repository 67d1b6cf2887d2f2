//! `toolgate policy test`: a document's own tests, and the rules that none of them reached.

use serde_json::{Value, json};
use toolgate_control::policy_check;
use toolgate_policy::{Known, Problem, Severity, TestReport, locate};

use super::problems::number;
use super::source::Source;
use super::{junit, problems, write};
use crate::args::{TestArgs, TestOutput};
use crate::exit::Done;
use crate::print;

pub(super) fn run(args: &TestArgs) -> anyhow::Result<Done> {
    let mut runs = Vec::new();
    for file in &args.files {
        let source = Source::read(file)?;
        let checked = policy_check::check(source.shown(), &source.text, &Known::default());
        let run = Run { report: checked.report, problems: checked.problems, source };
        if run.report.is_none() {
            problems::refuse(&run.source, &run.problems);
        }
        runs.push(run);
    }
    let text = match (args.output, runs.as_slice()) {
        (TestOutput::Table, runs) => runs
            .iter()
            .map(Run::table)
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join("\n"),
        (TestOutput::Json, [run]) => format!("{}\n", serde_json::to_string(&run.json())?),
        (TestOutput::Json, runs) => {
            let all: Vec<Value> = runs.iter().map(Run::json).collect();
            format!("{}\n", serde_json::to_string(&all)?)
        }
        (TestOutput::Junit, runs) => junit::report(runs),
    };
    match &args.write {
        Some(path) => write::replace(path, &text)?,
        None => print::out(&text),
    }
    for run in &runs {
        if let Some(report) = &run.report {
            print::err(&format!("{}\n", summary(run.source.shown(), report)));
        }
    }
    Ok(if runs.iter().all(Run::passed) { Done::Ok } else { Done::Finding })
}

/// The result of one document; no report if it is not valid.
pub(super) struct Run {
    pub(super) source: Source,
    pub(super) problems: Vec<Problem>,
    pub(super) report: Option<TestReport>,
}

impl Run {
    fn passed(&self) -> bool {
        self.report.as_ref().is_some_and(TestReport::passed)
    }

    /// The errors of a document that is not valid.
    pub(super) fn errors(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().filter(|p| p.severity == Severity::Error)
    }

    /// `file:line:column` of a rule, if it can be found.
    pub(super) fn place(&self, rule: &str) -> String {
        place(&self.source, rule)
    }

    fn table(&self) -> String {
        let Some(report) = &self.report else { return String::new() };
        let mut lines: Vec<String> = Vec::new();
        for result in &report.results {
            let (file, line, name) = (self.source.shown(), result.line, &result.name);
            lines.push(match &result.failure {
                None => format!("ok      {name}\n"),
                Some(why) => format!("FAILED  {name} ({file}:{line})\n        {why}\n"),
            });
        }
        if !report.unreached.is_empty() {
            lines.push("\nno test reached\n".to_owned());
            let rules = report.unreached.iter();
            lines.extend(rules.map(|rule| format!("  {rule}{}\n", self.place(rule))));
        }
        toolgate_control::visible(&lines.concat())
    }

    fn json(&self) -> Value {
        let results = self.report.iter().flat_map(|report| &report.results);
        let tests: Vec<Value> = results
            .map(|result| {
                json!({
                    "name": result.name,
                    "line": result.line,
                    "passed": result.failure.is_none(),
                    "failure": result.failure,
                })
            })
            .collect();
        let coverage = self.report.as_ref().map(|report| {
            json!({
                "rules": report.rules,
                "reached": report.rules - report.unreached.len(),
                "unreached": report.unreached,
            })
        });
        json!({
            "file": self.source.file,
            "passed": self.passed(),
            "tests": tests,
            "coverage": coverage,
            "problems": self.problems,
        })
    }
}

/// ` (file:line:column)` of a rule; empty if it has no position.
pub(crate) fn place(source: &Source, rule: &str) -> String {
    let pointer = match rule {
        "(hidden)" => "/hide",
        "(default deny)" => "/default",
        pointer => pointer,
    };
    match locate(&source.text, pointer) {
        Some((line, column)) => format!(" ({}:{line}:{column})", source.shown()),
        None => String::new(),
    }
}

fn summary(file: &str, report: &TestReport) -> String {
    let failed = report.results.iter().filter(|result| result.failure.is_some()).count();
    let tests = number(report.results.len(), "test");
    let reached = report.rules - report.unreached.len();
    let rules = number(report.rules, "rule");
    let came = match (report.results.len(), failed) {
        (0, _) => "no tests".to_owned(),
        (_, 0) => format!("{tests} passed"),
        (_, failed) => format!("{failed} of {tests} failed"),
    };
    format!("{file}: {came}, {reached} of {rules} reached")
}
