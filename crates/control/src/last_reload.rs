//! The last reload of the configuration, for people.

use jiff::Timestamp;

/// When the configuration was read again, and why the new one is not active.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastReload {
    /// When.
    pub time: Timestamp,
    /// Why the previous configuration stays active; `None` if the new one is.
    pub error: Option<String>,
}

impl LastReload {
    /// `ok` or `rejected`.
    pub fn result(&self) -> &'static str {
        if self.error.is_none() { "ok" } else { "rejected" }
    }
}
