//! A problem while the file is still being read, and where it is.

use crate::problem::Severity;

/// Where something stands: bytes for cutting, line and column for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// Enough to see what is wrong; a file of another kind could have a hundred thousand. Errors and
/// warnings are capped apart, so that warnings never keep an error out.
pub(crate) const MAX_FINDINGS: usize = 200;

/// A problem while the file is still being read: its line is cut out only when it is known what
/// must be masked.
#[derive(Debug, PartialEq)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    pub(crate) code: &'static str,
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}
