//! A problem found while the file is being read, with its position.

use toolgate_policy::Severity;
pub(crate) use toolgate_yaml::Span;

/// Enough to see what is wrong; a file of another kind could have a hundred thousand. Errors and
/// warnings are capped separately, so that warnings never displace an error.
pub(crate) const MAX_FINDINGS: usize = 200;

/// A problem while the file is being read. Its source line is extracted later, when it is known
/// what must be masked.
#[derive(Debug, PartialEq)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    pub(crate) code: &'static str,
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}
