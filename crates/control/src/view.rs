//! The read model of the admin API: what is active, made of file and store, replaced as a whole.

use std::collections::HashMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use toolgate_gateway::ActivePolicy;

/// Everything that people may view and that is not in the audit.
#[derive(Debug, Default)]
pub struct View {
    /// Servers, in order.
    pub servers: Vec<ServerItem>,
    /// Grants: those of the file, then those of the store, including revoked ones.
    pub grants: Vec<GrantItem>,
    /// People: `admin`, those of the file, then those of the store, including revoked ones.
    pub people: Vec<PersonItem>,
    /// Policies: those of the file, then those of the store.
    pub policies: Vec<PolicyText>,
    /// What is frozen.
    pub freezes: Vec<FreezeItem>,
    /// The active policy of each name.
    pub in_force: HashMap<String, Arc<ActivePolicy>>,
    /// Whether calls without a token are accepted.
    pub local: bool,
}

/// Where something is defined, which decides who may change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Place")]
pub enum Origin {
    /// In `toolgate.yaml`: changed only there.
    File,
    /// In the store: changed by API and CLI.
    Store,
    /// In the data folder.
    Data,
    /// Built in: never changed.
    #[serde(rename = "built-in")]
    BuiltIn,
}

/// A server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Server")]
pub struct ServerItem {
    /// Its name.
    pub name: String,
    /// Where it is defined.
    pub source: Origin,
    /// `stdio` or `http`.
    pub transport: &'static str,
    /// The program, or the address without its query.
    pub address: String,
    /// The whole command line as it is written, with references instead of values; null for `http`.
    pub command: Option<String>,
    /// What happens to new and changed definitions: `first`, `strict` or `off`.
    pub pin: &'static str,
    /// Number of tools in its last list; null if it was never listed.
    pub tools: Option<usize>,
    /// `ready`, `starting`, `failed`, `backing_off` or `never_used`.
    pub state: &'static str,
    /// How many of its processes or connections are open.
    pub running: usize,
    /// Why its last start failed, or why it was lost; null after a successful start.
    pub last_error: Option<String>,
    /// When that happened.
    pub last_error_at: Option<String>,
    /// Seconds until the next start is possible, if it is delayed.
    pub retry_after_s: Option<u64>,
}

/// A grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Grant")]
pub struct GrantItem {
    /// Its id; never changes.
    pub id: String,
    /// Its label; unique.
    pub label: String,
    /// Where it is defined.
    pub source: Origin,
    /// The identity on whose behalf the agent acts.
    pub identity: Option<String>,
    /// Groups of that identity.
    pub groups: Vec<String>,
    /// Servers it may reach; null is all.
    pub servers: Option<Vec<String>>,
    /// Sessions it may reach; null is all.
    pub sessions: Option<serde_json::Value>,
    /// Its policy; null denies everything.
    pub policy: Option<String>,
    /// When it was created; null for grants of the file.
    pub created: Option<String>,
    /// When its token expires.
    pub expires: Option<String>,
    /// When it was last used; null if it never was.
    pub last_use: Option<String>,
    /// When it was revoked.
    pub revoked: Option<String>,
}

/// A person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Person")]
pub struct PersonItem {
    /// Their id; never changes.
    pub id: String,
    /// Their name; unique.
    pub name: String,
    /// Where they are defined.
    pub source: Origin,
    /// Their roles.
    pub roles: Vec<String>,
    /// Groups they are in.
    pub groups: Vec<String>,
    /// When they were created; null for people of the file.
    pub created: Option<String>,
    /// When their token expires.
    pub expires: Option<String>,
    /// When their token was revoked.
    pub revoked: Option<String>,
}

/// A policy without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Policy")]
pub struct PolicyItem {
    /// Its name.
    pub name: String,
    /// Where it is defined.
    pub source: Origin,
    /// Its version in the store; null for policies of the file.
    pub version: Option<u64>,
    /// SHA-256 of its meaning; null if it is not active.
    pub hash: Option<String>,
    /// Whether it is active; a policy that can no longer be parsed denies everything.
    pub state: PolicyState,
    /// When this version was created; null for policies of the file.
    pub created: Option<String>,
    /// The version in the store that this policy of the file shadows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shadows: Option<u64>,
}

/// Whether a policy is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Stands")]
pub enum PolicyState {
    /// It is active.
    InForce,
    /// It cannot be parsed, so its grants are denied everything.
    Broken,
}

/// A policy with its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "PolicyDocument")]
pub struct PolicyText {
    /// The policy.
    #[serde(flatten)]
    pub item: PolicyItem,
    /// The document.
    pub document: String,
}

/// A freeze by a person: exactly one of `grant`, `server`, `session` and `all`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Freeze")]
pub struct FreezeItem {
    /// Its id.
    pub id: String,
    /// The label of a grant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// The name of a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The id of a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Everything.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// When it began.
    pub created: String,
    /// The person who ordered it; null if that was not recorded.
    pub person: Option<String>,
    /// Why, if the person gave a reason.
    pub reason: Option<String>,
}
