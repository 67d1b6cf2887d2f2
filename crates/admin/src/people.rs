//! People: who may use the admin API, and for what.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_audit::Hash;

/// What a person may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Looks.
    Viewer,
    /// Looks and answers approvals.
    Approver,
    /// Looks, changes policies and attaches them to grants.
    PolicyManager,
    /// Everything.
    Admin,
}

/// Somebody with a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// Their name; unique.
    pub name: Arc<str>,
    /// What they may do.
    pub roles: Vec<Role>,
    /// Groups they are in.
    pub groups: Vec<String>,
    /// When their token ends.
    pub expires: Option<Timestamp>,
}

/// Everybody, by the SHA-256 of their token.
#[derive(Debug, Default)]
pub struct People(HashMap<Hash, Arc<Person>>);

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Approver, Self::PolicyManager, Self::Admin];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Approver => "approver",
            Self::PolicyManager => "policy_manager",
            Self::Admin => "admin",
        }
    }

    /// The role of a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == word)
    }

    /// Whether who has this may do what `needed` may. Everybody may look; an admin may everything.
    fn covers(self, needed: Self) -> bool {
        self == Self::Admin || needed == Self::Viewer || self == needed
    }
}

impl Person {
    /// Whether they may do what this role may.
    pub fn may(&self, needed: Role) -> bool {
        self.roles.iter().any(|role| role.covers(needed))
    }
}

impl People {
    /// These people.
    pub fn new(people: impl IntoIterator<Item = (Hash, Arc<Person>)>) -> Self {
        Self(people.into_iter().collect())
    }

    /// Whose token this is; found by its hash, so how long that takes says nothing about tokens.
    pub fn find(&self, token: &str, now: Timestamp) -> Option<Arc<Person>> {
        let person = self.0.get(&Hash::of(token.as_bytes()))?;
        person.expires.is_none_or(|end| now < end).then(|| Arc::clone(person))
    }
}
