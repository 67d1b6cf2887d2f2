//! A finding: one thing that is wrong, or doubtful, in a policy or in a server's entry.

use std::borrow::Cow;

use serde::Serialize;
use toolgate_policy::{Problem, Severity, TestResult};

/// The code of a test that failed.
const TEST_FAILED: &str = "test_failed";

/// One thing that is wrong or doubtful, with its place and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A stable code.
    pub code: Cow<'static, str>,
    /// Error or warning.
    pub severity: Severity,
    /// From 1; 0 where there is no place.
    pub line: usize,
    /// From 1; 0 where there is no place.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
    /// All of it for a terminal or a log, with the excerpt of the document where there is one.
    #[serde(skip)]
    pub text: String,
}

impl Finding {
    /// A problem of a policy, shown as one of `file`.
    pub fn of_problem(problem: &Problem, file: &str, source: &str) -> Self {
        Self {
            code: problem.code.as_str().into(),
            severity: problem.severity,
            line: problem.line,
            column: problem.column,
            message: problem.message.clone(),
            hint: problem.hint.clone(),
            text: problem.render(file, source),
        }
    }

    /// A test of a policy that failed; `None` if it passed.
    pub fn of_test(result: &TestResult, file: &str) -> Option<Self> {
        let message = format!("test `{}` fails: {}", result.name, result.failure.as_ref()?);
        let text = format!("{file}:{}: error: {message}\n", result.line);
        Some(Self {
            code: TEST_FAILED.into(),
            severity: Severity::Error,
            line: result.line,
            column: 1,
            message,
            hint: "correct the rule, or the test".to_owned(),
            text,
        })
    }

    /// A problem of a configuration.
    pub fn of_config(problem: &toolgate_config::Problem) -> Self {
        Self {
            code: problem.code.into(),
            severity: problem.severity,
            line: problem.line,
            column: problem.column,
            message: problem.message.clone(),
            hint: problem.hint.clone().unwrap_or_default(),
            text: problem.to_string(),
        }
    }

    /// Whether it keeps the document from being used.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
