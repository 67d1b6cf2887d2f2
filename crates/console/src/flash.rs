//! A message about what was just done, for the next page.

/// A message about what was just done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flash {
    pub(crate) is_error: bool,
    pub(crate) text: String,
}

impl Flash {
    /// It was done.
    pub(crate) fn done(text: String) -> Self {
        Self { is_error: false, text }
    }

    /// It was not done.
    pub(crate) fn failed(text: String) -> Self {
        Self { is_error: true, text }
    }
}
