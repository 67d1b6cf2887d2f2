//! The roles of people.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::Keyword;

/// What a person may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// May view.
    Viewer,
    /// May view and answer approvals.
    Approver,
    /// May view, change policies and attach them to grants.
    PolicyManager,
    /// May do everything.
    Admin,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Approver, Self::PolicyManager, Self::Admin];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Approver => "approver",
            Self::PolicyManager => "policy_manager",
            Self::Admin => "admin",
        }
    }

    /// The role of a name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == word)
    }

    /// Whether this role includes `needed`. Every role may view; `admin` may do everything.
    pub fn covers(self, needed: Self) -> bool {
        self == Self::Admin || needed == Self::Viewer || self == needed
    }
}

impl Keyword for Role {
    const WORDS: &'static [(&'static str, Self)] = &[
        (Self::Viewer.as_str(), Self::Viewer),
        (Self::Approver.as_str(), Self::Approver),
        (Self::PolicyManager.as_str(), Self::PolicyManager),
        (Self::Admin.as_str(), Self::Admin),
    ];
}
