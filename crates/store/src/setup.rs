//! What people set up: grants, people, policies, freezes, and documents others want kept.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate_audit::Hash;

/// A labelled, revocable bearer token of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredGrant {
    /// Never changes.
    pub id: Arc<str>,
    /// Its name; unique, also among revoked ones, because the audit and counters speak of it.
    pub label: Arc<str>,
    /// SHA-256 of the token.
    pub token: Hash,
    /// Whom it stands for.
    pub identity: Option<Arc<str>>,
    /// Groups of that identity.
    pub groups: Vec<String>,
    /// Servers it may reach; all if absent.
    pub servers: Option<Vec<String>>,
    /// Sessions it may reach, as JSON; all if absent.
    pub sessions: Option<Arc<str>>,
    /// Its policy; none denies everything.
    pub policy: Option<Arc<str>>,
    /// When it was made.
    pub created: Timestamp,
    /// When it ends.
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
    /// What they may do.
    pub roles: Vec<String>,
    /// Groups they are in.
    pub groups: Vec<String>,
    /// When they were made.
    pub created: Timestamp,
    /// When their token ends.
    pub expires: Option<Timestamp>,
    /// When it was revoked.
    pub revoked: Option<Timestamp>,
}

/// The newest version of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyVersion {
    /// Its name.
    pub name: Arc<str>,
    /// From 1, one more with each change.
    pub version: u64,
    /// The text.
    pub document: Arc<str>,
    /// When this version was made.
    pub created: Timestamp,
}

/// What is frozen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FreezeTarget {
    /// Everything.
    All,
    /// One grant, by label.
    Grant(Arc<str>),
    /// One server; `sessions` is all sessions.
    Server(Arc<str>),
    /// One session, by id.
    Session(Arc<str>),
}

/// A person stopped something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// Its id.
    pub id: Arc<str>,
    /// What is frozen.
    pub what: FreezeTarget,
    /// Since when.
    pub created: Timestamp,
}

/// A document that somebody wants kept; the store does not look into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Who keeps it: `tools`, `showcase`, …
    pub space: Arc<str>,
    /// What it is about.
    pub key: Arc<str>,
    /// JSON.
    pub json: Arc<str>,
}

/// Spaces whose documents decide what is in force: a change of one is a change of what people set
/// up. The others may change often, and concern nobody who decides.
pub const SETUP_SPACES: [&str; 2] = ["servers", "local"];

/// Everything people set up, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The generation it belongs to.
    pub generation: u64,
    /// All grants, revoked ones too: a store that ever had one knows it.
    pub grants: Vec<StoredGrant>,
    /// All people, revoked ones too.
    pub people: Vec<StoredPerson>,
    /// The newest version of each policy.
    pub policies: Vec<PolicyVersion>,
    /// What is frozen now.
    pub freezes: Vec<Freeze>,
}

/// One change of what people set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Makes a grant, or replaces the one with this id (also to rotate its token).
    PutGrant(Box<StoredGrant>),
    /// Revokes a grant, by id.
    RevokeGrant(Arc<str>),
    /// Makes a person, or replaces the one with this id.
    PutPerson(Box<StoredPerson>),
    /// Revokes a person's token, by id.
    RevokePerson(Arc<str>),
    /// Makes a policy, or its next version.
    PutPolicy {
        /// Its name.
        name: Arc<str>,
        /// The text.
        document: Arc<str>,
    },
    /// Takes a policy away, by name. Its versions go on counting if it comes back.
    RemovePolicy(Arc<str>),
    /// Freezes.
    Freeze(Freeze),
    /// Ends a freeze, by id.
    Unfreeze(Arc<str>),
    /// Believes the clock again after it was far ahead: the time of the row becomes the time that
    /// counts, and windows move with it, their counts kept.
    AcceptClock,
    /// Keeps a document.
    PutDocument(Document),
    /// Forgets one, by space and key.
    RemoveDocument(Arc<str>, Arc<str>),
    /// Keeps and forgets documents of one space, all of it or nothing. What is not there need not
    /// be forgotten.
    ReplaceDocuments {
        /// Which space.
        space: Arc<str>,
        /// Key and JSON of what is kept.
        keep: Vec<(Arc<str>, Arc<str>)>,
        /// Keys of what is forgotten.
        forget: Vec<Arc<str>>,
    },
}

impl Change {
    /// Whether it makes a new generation: it concerns what decides.
    pub fn is_setup(&self) -> bool {
        match self {
            Self::PutDocument(kept) => SETUP_SPACES.contains(&&*kept.space),
            Self::RemoveDocument(space, _) | Self::ReplaceDocuments { space, .. } => {
                SETUP_SPACES.contains(&&**space)
            }
            _ => true,
        }
    }
}
