//! `approvals`: who may answer a held call.

use crate::reader::section;
use crate::value::words;

/// Approvals by people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalsConfig {
    /// Whether a person may answer calls made in their own name.
    pub four_eyes: FourEyes,
}

words! {
    /// Whether a person may answer calls made in their own name.
    pub enum FourEyes {
        /// Forbidden as soon as a second person exists or the entry names approvers.
        Auto = "auto",
        /// Forbidden.
        On = "on",
        /// Allowed.
        Off = "off",
    }
}

section! {
    /// Approvals by people.
    #[schemars(rename = "Approvals")]
    struct RawApprovals {
        /// A person may not answer calls of a grant whose identity is that person: `on`, `off`, or `auto` (on as soon as a second person exists, or the policy entry names approvers).
        #[schemars(extend("default" = "auto"))]
        four_eyes: FourEyes,
    }
}

impl RawApprovals {
    pub(crate) fn lower(self) -> ApprovalsConfig {
        ApprovalsConfig { four_eyes: self.four_eyes.map_or(FourEyes::Auto, |at| at.value) }
    }
}
