//! `approvals`: who may answer held calls.

use crate::reader::{Reader, section};
use crate::value::Switch;

/// How people answer held calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalsConfig {
    /// Whether a person may not answer the calls of a grant with their own name as identity. By
    /// default that is so once there is a second person, or the policy names approvers.
    pub four_eyes: Option<bool>,
}

section! {
    /// How people answer held calls.
    #[schemars(rename = "Approvals")]
    struct RawApprovals {
        /// Whether a person whose name is the identity of a grant may not answer its approvals. Default: on as soon as there is a second person or the policy names `approvers`.
        four_eyes: Switch,
    }
}

impl RawApprovals {
    pub(crate) fn lower(self, _: &mut Reader<'_>) -> ApprovalsConfig {
        ApprovalsConfig { four_eyes: self.four_eyes.map(|at| at.value.0) }
    }
}
