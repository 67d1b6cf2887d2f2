//! Loads a policy and runs its own tests: the one way from a document to a policy that may decide.
//!
//! Invariant: [`Checked::accept`] returns no policy that has an error or a failing test.

use std::fmt;
use std::time::{Duration, Instant};

use toolgate_policy::{Known, Policy, Problem, Severity, TestReport};

use crate::finding::Finding;

/// How long the tests of a document may take.
const TESTS: Duration = Duration::from_secs(2);

/// A document after its check.
#[derive(Debug)]
pub struct Checked {
    /// The policy, if the document is valid. Its tests may have failed.
    pub policy: Option<Policy>,
    /// Errors and warnings, in the order of the document.
    pub problems: Vec<Problem>,
    /// The results of its tests, if it is valid and they were run.
    pub report: Option<TestReport>,
}

/// Why a document is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// Whether the document is valid and fails its own tests.
    pub fails_tests: bool,
    /// Everything that is wrong with it; warnings only beside errors.
    pub findings: Vec<Finding>,
}

/// Loads a document and runs its tests.
pub fn check(name: &str, text: &str, known: &Known) -> Checked {
    let loaded = load(name, text, known);
    let report = loaded.policy.as_ref().map(|policy| {
        let end = Instant::now() + TESTS;
        policy.run_tests_while(&|| Instant::now() < end)
    });
    Checked { report, ..loaded }
}

/// Loads a document whose text has passed its tests before.
pub(crate) fn load(name: &str, text: &str, known: &Known) -> Checked {
    let loaded = Policy::load(name, text, known);
    Checked { policy: loaded.policy, problems: loaded.problems, report: None }
}

impl Checked {
    /// Every error and warning, then every failing test, as those of `file` with this text.
    pub fn findings(&self, file: &str, text: &str) -> Vec<Finding> {
        let problems = self.problems.iter().map(|it| Finding::of_problem(it, file, text));
        let results = self.report.iter().flat_map(|report| &report.results);
        problems.chain(results.filter_map(|result| Finding::of_test(result, file))).collect()
    }

    /// The warnings of a document, for the log.
    pub(crate) fn warnings(&self, file: &str, text: &str) -> Vec<String> {
        let warnings = self.problems.iter().filter(|it| it.severity == Severity::Warning);
        warnings.map(|it| it.render(file, text)).collect()
    }

    /// The policy, if nothing keeps it from deciding.
    pub fn accept(self, file: &str, text: &str) -> Result<Policy, Rejected> {
        let findings = self.findings(file, text);
        match self.policy {
            None => Err(Rejected { fails_tests: false, findings }),
            Some(_) if findings.iter().any(Finding::is_error) => {
                let findings = findings.into_iter().filter(Finding::is_error).collect();
                Err(Rejected { fails_tests: true, findings })
            }
            Some(policy) => Ok(policy),
        }
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors = self.findings.iter().filter(|finding| finding.is_error());
        f.write_str(&errors.map(|it| it.text.as_str()).collect::<Vec<_>>().join("\n"))
    }
}

impl std::error::Error for Rejected {}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILS: &str = "version: '1'\ndefault: allow\ntests:\n  - name: denied\n    \
                         call: { tool: drop }\n    expect: deny\n";

    fn accept(text: &str) -> Result<Policy, Rejected> {
        check("p", text, &Known::default()).accept("p.yaml", text)
    }

    #[test]
    fn a_valid_document_that_passes_is_accepted() {
        let passes = FAILS.replace("expect: deny", "expect: allow");
        assert_eq!(accept(&passes).unwrap().name(), "p");
    }

    #[test]
    fn an_invalid_document_is_rejected_with_its_place() {
        let rejected = accept("version: '1'\ndefault: alow\n").unwrap_err();
        assert!(!rejected.fails_tests);
        assert!(rejected.to_string().starts_with("p.yaml:2:10: error["), "{rejected}");
    }

    #[test]
    fn a_failing_test_rejects_in_one_text() {
        let rejected = accept(FAILS).unwrap_err();
        assert!(rejected.fails_tests);
        let [finding] = rejected.findings.as_slice() else { panic!("{rejected:?}") };
        assert_eq!((finding.code.as_ref(), finding.line), ("test_failed", 4));
        assert!(finding.message.starts_with("test `denied` fails: "), "{finding:?}");
        assert_eq!(rejected.to_string(), format!("p.yaml:4: error: {}\n", finding.message));
    }

    #[test]
    fn a_text_that_passed_before_is_loaded_without_its_tests() {
        let loaded = load("p", FAILS, &Known::default());
        assert!(loaded.report.is_none() && loaded.accept("p.yaml", FAILS).is_ok());
    }
}
