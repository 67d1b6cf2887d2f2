//! What people set up: grants, people, policies, freezes, and opaque documents of other parts.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate_audit::Hash;

use crate::{Answer, StandingException};

/// A labelled, revocable bearer token of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredGrant {
    /// Never changes.
    pub id: Arc<str>,
    /// Its name. Unique, including revoked grants, because audit rows and counters refer to it.
    pub label: Arc<str>,
    /// SHA-256 of the token.
    pub token: Hash,
    /// The identity that the grant represents.
    pub identity: Option<Arc<str>>,
    /// Groups of that identity.
    pub groups: Vec<String>,
    /// Servers it may reach; all if absent.
    pub servers: Option<Vec<String>>,
    /// Sessions it may reach, as JSON; all if absent.
    pub sessions: Option<Arc<str>>,
    /// Its policy; without one, every call is denied.
    pub policy: Option<Arc<str>>,
    /// When it was created.
    pub created: Timestamp,
    /// When it expires.
    pub expires: Option<Timestamp>,
    /// When it was last used.
    pub last_use: Option<Timestamp>,
    /// When it was revoked.
    pub revoked: Option<Timestamp>,
}

/// A named token for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPerson {
    /// Never changes.
    pub id: Arc<str>,
    /// Unique, also among revoked ones.
    pub name: Arc<str>,
    /// SHA-256 of the token.
    pub token: Hash,
    /// What the person may do.
    pub roles: Vec<String>,
    /// The person's groups.
    pub groups: Vec<String>,
    /// When the person was created.
    pub created: Timestamp,
    /// When the token expires.
    pub expires: Option<Timestamp>,
    /// When the token was revoked.
    pub revoked: Option<Timestamp>,
}

/// The newest version of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyVersion {
    /// Its name.
    pub name: Arc<str>,
    /// Starts at 1 and grows by one with each change.
    pub version: u64,
    /// The policy document.
    pub document: Arc<str>,
    /// When this version was created.
    pub created: Timestamp,
}

/// What a freeze applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FreezeTarget {
    /// Everything.
    All,
    /// One grant, by label.
    Grant(Arc<str>),
    /// One server; `sessions` freezes all sessions.
    Server(Arc<str>),
    /// One session, by id.
    Session(Arc<str>),
}

/// A stop that a person ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// Its id.
    pub id: Arc<str>,
    /// What is frozen.
    pub what: FreezeTarget,
    /// Since when.
    pub created: Timestamp,
    /// The person who ordered it; `None` for freezes of before toolgate recorded it.
    pub person: Option<Arc<str>>,
    /// Why, if the person gave a reason.
    pub reason: Option<Arc<str>>,
}

/// The last use of a grant that is not stored, because the file defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantUse {
    /// The id of the grant, as given to [`crate::Store::touch`].
    pub id: Arc<str>,
    /// When it was last used.
    pub at: Timestamp,
}

/// A document stored for another part of toolgate; the store does not interpret it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its owner: `tools`, `showcase`, …
    pub space: Arc<str>,
    /// Its key within the space.
    pub key: Arc<str>,
    /// JSON.
    pub json: Arc<str>,
}

/// Spaces whose documents affect decisions. A change in one of them makes a new generation;
/// documents of other spaces may change often and affect no decision.
pub const SETUP_SPACES: [&str; 3] = ["servers", "local", "approved_tools"];

/// Everything that people set up, at one point in time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The generation it belongs to.
    pub generation: u64,
    /// All grants, including revoked ones.
    pub grants: Vec<StoredGrant>,
    /// All people, including revoked ones.
    pub people: Vec<StoredPerson>,
    /// The newest version of each policy.
    pub policies: Vec<PolicyVersion>,
    /// The current freezes; each target has at most one.
    pub freezes: Vec<Freeze>,
    /// Standing exceptions that have not ended.
    pub exceptions: Vec<StandingException>,
    /// The last use of each grant that is not in `grants`.
    pub uses: Vec<GrantUse>,
}

/// One change of the setup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Creates a grant, or replaces the one with this id (also to rotate its token).
    PutGrant(Box<StoredGrant>),
    /// Revokes a grant, by id.
    RevokeGrant(Arc<str>),
    /// Creates a person, or replaces the one with this id.
    PutPerson(Box<StoredPerson>),
    /// Revokes a person's token, by id.
    RevokePerson(Arc<str>),
    /// Creates a policy, or its next version.
    PutPolicy {
        /// Its name.
        name: Arc<str>,
        /// The policy document.
        document: Arc<str>,
    },
    /// Removes a policy, by name. If it is created again, its version numbers continue.
    RemovePolicy(Arc<str>),
    /// Adds a freeze. If the target is already frozen, nothing changes and the error names the
    /// existing freeze.
    Freeze(Freeze),
    /// Ends a freeze, by id.
    Unfreeze(Arc<str>),
    /// A person answers an approval. The store completes and writes the row itself.
    Answer {
        /// The id of the approval.
        approval: Arc<str>,
        /// The answer.
        answer: Box<Answer>,
    },
    /// Adds a standing exception.
    Except(Box<StandingException>),
    /// Ends a standing exception, by id.
    EndException(Arc<str>),
    /// Accepts the current clock after it was far ahead: the time of the row becomes the effective
    /// time, and windows move with it and retain their counts.
    AcceptClock,
    /// Stores a document.
    PutDocument(Document),
    /// Removes a document, by space and key.
    RemoveDocument(Arc<str>, Arc<str>),
    /// Stores and removes documents of one space atomically. Removing a missing document is not an
    /// error.
    ReplaceDocuments {
        /// The space.
        space: Arc<str>,
        /// Key and JSON of each document to store.
        keep: Vec<(Arc<str>, Arc<str>)>,
        /// Keys of the documents to remove.
        forget: Vec<Arc<str>>,
    },
}

impl FreezeTarget {
    /// The kind of the target, and its name if it has one.
    pub fn parts(&self) -> (&'static str, Option<&Arc<str>>) {
        match self {
            Self::All => ("all", None),
            Self::Grant(label) => ("grant", Some(label)),
            Self::Server(name) => ("server", Some(name)),
            Self::Session(id) => ("session", Some(id)),
        }
    }
}

impl Change {
    /// Whether the change makes a new generation, because it affects decisions.
    pub fn is_setup(&self) -> bool {
        match self {
            Self::PutDocument(kept) => SETUP_SPACES.contains(&&*kept.space),
            Self::RemoveDocument(space, _) | Self::ReplaceDocuments { space, .. } => {
                SETUP_SPACES.contains(&&**space)
            }
            Self::Answer { .. } => false,
            _ => true,
        }
    }
}
