//! People: who may use the admin API, and with which roles.

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
    /// May view.
    Viewer,
    /// May view and answer approvals.
    Approver,
    /// May view, change policies and attach them to grants.
    PolicyManager,
    /// May do everything.
    Admin,
}

/// A person with a token.
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

/// All people, by the SHA-256 of their token.
#[derive(Debug, Default)]
pub struct People(HashMap<Hash, Arc<Person>>);

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Approver, Self::PolicyManager, Self::Admin];

    /// The name of the role.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Approver => "approver",
            Self::PolicyManager => "policy_manager",
            Self::Admin => "admin",
        }
    }

    /// The role with this name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == word)
    }

    /// Whether this role includes `needed`. Every role includes viewing; `admin` includes all.
    fn covers(self, needed: Self) -> bool {
        self == Self::Admin || needed == Self::Viewer || self == needed
    }
}

impl Person {
    /// Whether the person has this role.
    pub fn may(&self, needed: Role) -> bool {
        self.roles.iter().any(|role| role.covers(needed))
    }
}

impl People {
    /// These people.
    pub fn new(people: impl IntoIterator<Item = (Hash, Arc<Person>)>) -> Self {
        Self(people.into_iter().collect())
    }

    /// The person with this token; looked up by its hash, so timing reveals nothing about tokens.
    pub fn find(&self, token: &str, now: Timestamp) -> Option<Arc<Person>> {
        let person = self.0.get(&Hash::of(token.as_bytes()))?;
        person.expires.is_none_or(|end| now < end).then(|| Arc::clone(person))
    }

    /// Whether a person of this name may still view.
    pub(crate) fn has(&self, name: &str, now: Timestamp) -> bool {
        let valid = |person: &&Arc<Person>| person.expires.is_none_or(|end| now < end);
        self.0.values().filter(valid).any(|person| *person.name == *name)
    }
}
