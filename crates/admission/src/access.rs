//! Access: the active grants, their policies, and what is frozen.
//!
//! The active state is one value. It is rebuilt on every change and swapped as a whole, so that a
//! request is decided under exactly one state.
//!
//! Invariant: only the SHA-256 of a token is known, and grants are looked up by it. The time of a
//! lookup therefore reveals nothing about a token.
//! Invariant: a grant without a policy may do nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use tokio::sync::{Semaphore, SemaphorePermit};
use toolgate_audit::{FactPath, Hash};
use toolgate_policy::{
    Answerer, Call, Class, Exception, Kept, MayNotAnswer, Policy, Question, is_listed,
};
use toolgate_session::Reach;
use toolgate_store::{Answer, StoredApproval};

use crate::list_kind::Kind;

/// The active grants and freezes.
#[derive(Debug, Default)]
pub struct Access {
    /// The grant of calls without a token; without it they are rejected.
    pub local: Option<Arc<Grant>>,
    /// Grants by the SHA-256 of their token.
    by_token: HashMap<TokenHash, Arc<Grant>>,
    by_label: HashMap<Arc<str>, Arc<Grant>>,
    /// What is frozen.
    pub frozen: Frozen,
    /// Who may answer approvals.
    pub approvers: Approvers,
    /// Standing exceptions, by the label of their grant.
    pub exceptions: HashMap<Arc<str>, Vec<GrantedException>>,
    /// The generation of the store that this was built from; `None` without a store that can change.
    pub generation: Option<u64>,
}

/// A standing exception, and what similar calls have in common.
#[derive(Debug)]
pub struct GrantedException {
    /// The exception.
    pub exception: Arc<Exception>,
    /// What the arguments of a similar call must be.
    pub kept: Kept,
}

/// The people who may answer approvals.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Approvers {
    /// Each person with the role, by name.
    pub by_name: HashMap<Arc<str>, Approver>,
    /// How many people there are, with any role.
    pub people: usize,
    /// `approvals.four_eyes`.
    pub four_eyes: Option<bool>,
}

/// A person who may answer approvals.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Approver {
    /// Their groups.
    pub groups: Vec<String>,
    /// When their token expires; their answers are invalid after that.
    pub expires: Option<Timestamp>,
}

/// The SHA-256 of a token.
#[derive(Debug, Clone, Copy, Eq, std::hash::Hash)]
#[expect(
    clippy::derived_hash_with_manual_eq,
    reason = "the manual `eq` compares like a derived one"
)]
struct TokenHash(Hash);

/// What is frozen.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Frozen {
    /// Everything.
    pub all: bool,
    /// Grants, by label.
    pub grants: HashSet<Arc<str>>,
    /// Servers; `sessions` is all sessions.
    pub servers: HashSet<Arc<str>>,
    /// Sessions, by id.
    pub sessions: HashSet<Arc<str>>,
}

/// A grant: its label, what it may reach, and its policy.
#[derive(Debug, Default)]
pub struct Grant {
    /// Its id, under which the store records its last use; `None` for grants without one.
    pub id: Option<Arc<str>>,
    /// Its name; unique.
    pub label: Arc<str>,
    /// The identity that it represents.
    pub identity: Option<Arc<str>>,
    /// Groups of that identity.
    pub groups: Vec<String>,
    /// Servers it may reach; all if absent.
    pub servers: Option<HashSet<String>>,
    /// Sessions it may reach; all by default.
    pub sessions: Arc<Reach>,
    /// The policy that decides its calls; without one they are denied.
    pub policy: Option<Arc<ActivePolicy>>,
    /// The SHA-256 of its token, if it has one. A new token ends its agent sessions.
    pub token: Option<Hash>,
    /// When its token expires.
    pub expires: Option<Timestamp>,
    /// The last use that the store has received.
    pub last_use: LastUse,
    /// Limits its concurrent requests to the store.
    pub slots: StoreSlots,
    /// Whether a person tests a server with it: then it may list and do nothing else.
    pub is_trial: bool,
    /// The person who calls with its rights.
    pub acting: Option<Acting>,
    /// How its requests arrive, for the audit, if not over HTTP.
    pub via: Option<Arc<str>>,
}

/// A person who calls with the rights of a grant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Acting {
    /// Their name.
    pub person: Arc<str>,
    /// `via` of the calls: `cli` for `toolgate tool --as`, `console` for *Try it*.
    pub via: &'static str,
}

/// Limits the concurrent requests of one grant to the store, so that one grant never fills the
/// store's queue. Further requests wait here.
#[derive(Debug)]
pub struct StoreSlots(Semaphore);

/// The maximum number of concurrent requests of one grant to the store.
const SLOTS: usize = 512;

impl Default for StoreSlots {
    fn default() -> Self {
        Self(Semaphore::new(SLOTS))
    }
}

impl StoreSlots {
    /// Waits for a free slot.
    pub async fn take(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.0.acquire().await.ok()
    }
}

/// The second of the last use that the store has received.
#[derive(Debug, Default)]
pub struct LastUse(AtomicI64);

/// An active policy.
#[derive(Debug)]
pub struct ActivePolicy {
    /// The compiled document.
    pub policy: Arc<Policy>,
    /// Its name.
    pub name: Arc<str>,
    /// Its version in the store.
    pub(crate) version: Option<u64>,
    /// SHA-256 of its meaning.
    pub hash: Option<Hash>,
    /// The paths that `audit.arguments: facts` records.
    pub(crate) paths: Vec<FactPath>,
}

// === impl Access ===

impl Access {
    /// Access for these grants. Of two with the same label or token the last one wins.
    pub fn new(
        local: Option<Arc<Grant>>,
        grants: impl IntoIterator<Item = (Hash, Arc<Grant>)>,
    ) -> Self {
        let grants = grants.into_iter().map(|(token, grant)| (TokenHash(token), grant));
        let by_token: HashMap<_, _> = grants.collect();
        let of_label = |grant: &Arc<Grant>| (Arc::clone(&grant.label), Arc::clone(grant));
        let by_label = by_token.values().map(of_label).collect();
        Self { local, by_token, by_label, ..Self::default() }
    }

    /// The grant of a request with this token, or without one; `None` if the token is not valid.
    pub fn caller(&self, token: Option<&str>, now: Timestamp) -> Option<Arc<Grant>> {
        let grant = match token {
            None => self.local.as_ref()?,
            Some(token) => self.by_token.get(&TokenHash(Hash::of(token.as_bytes())))?,
        };
        (!grant.has_expired(now)).then(|| Arc::clone(grant))
    }

    /// The current state of a grant that was looked up before. Without a store that can change it is
    /// still the same.
    pub(crate) fn current<'a>(&'a self, held: &'a Grant) -> Option<&'a Grant> {
        let unchanged = (self.generation.is_none() || held.is_trial).then_some(held);
        self.of_label(&held.label).map(|grant| &**grant).or(unchanged)
    }

    /// The grant of this label as it is now.
    pub fn of_label(&self, label: &str) -> Option<&Arc<Grant>> {
        let local = self.local.as_ref().filter(|grant| *grant.label == *label);
        local.or_else(|| self.by_label.get(label))
    }
}

// === impl Approvers ===

/// How a person answers who was asked through the agent's own client.
pub const IN_BAND: &str = "in-band";

impl Approvers {
    /// Whether a person may answer an approval now.
    pub fn may_answer(
        &self,
        approval: &StoredApproval,
        person: &str,
        now: Timestamp,
    ) -> Result<(), MayNotAnswer> {
        let question = &approval.question;
        let has_expired = |one: &Approver| one.expires.is_some_and(|end| now >= end);
        if self.by_name.get(person).is_some_and(has_expired) {
            return Err(MayNotAnswer::NotAsked(question.asked()));
        }
        self.may_be_asked(question, person, approval.call.identity.as_deref())
    }

    /// The same about calls of a grant with this identity, as long as the person's token is valid.
    pub fn may_be_asked(
        &self,
        question: &Question,
        person: &str,
        identity: Option<&str>,
    ) -> Result<(), MayNotAnswer> {
        let Some(one) = self.by_name.get(person) else {
            return Err(MayNotAnswer::NotAsked(question.asked()));
        };
        let who = Answerer { name: person, groups: &one.groups };
        question.may_answer(who, identity, self.four_eyes, self.people)
    }

    /// Whether an answer is still valid.
    pub fn accepts(&self, approval: &StoredApproval, answer: &Answer, now: Timestamp) -> bool {
        if &*answer.via == IN_BAND {
            return approval.question.asks_only_requester();
        }
        self.may_answer(approval, &answer.person, now).is_ok()
    }
}

// === impl TokenHash ===

impl PartialEq for TokenHash {
    fn eq(&self, other: &Self) -> bool {
        #[cfg(test)]
        tests::COMPARED.set(tests::COMPARED.get() + 1);
        self.0 == other.0
    }
}

// === impl Frozen ===

impl Frozen {
    /// The same for a call, which may go to a session.
    pub(crate) fn stops_call(
        &self,
        grant: &str,
        server: &str,
        session: Option<&str>,
    ) -> Option<String> {
        let of_session = || {
            let id = session.filter(|id| self.sessions.contains(*id))?;
            Some(format!("the session `{id}` is frozen"))
        };
        self.stops(grant, server).or_else(of_session)
    }

    /// The freeze that stops a request, as a sentence; `None` if nothing is frozen.
    pub(crate) fn stops(&self, grant: &str, server: &str) -> Option<String> {
        if self.all {
            Some("everything is frozen".to_owned())
        } else if self.grants.contains(grant) {
            Some(format!("the grant `{grant}` is frozen"))
        } else if self.servers.contains(server) {
            Some(format!("the server `{server}` is frozen"))
        } else {
            None
        }
    }
}

// === impl Grant ===

impl Grant {
    /// The same grant, with a person who calls with its rights.
    pub(crate) fn with_acting(&self, acting: Acting) -> Self {
        Self {
            id: self.id.clone(),
            label: Arc::clone(&self.label),
            identity: self.identity.clone(),
            groups: self.groups.clone(),
            servers: self.servers.clone(),
            sessions: Arc::clone(&self.sessions),
            policy: self.policy.clone(),
            token: self.token,
            expires: self.expires,
            is_trial: self.is_trial,
            acting: Some(acting),
            ..Self::default()
        }
    }

    /// Whether it may reach this server.
    pub fn may_reach(&self, server: &str) -> bool {
        self.servers.as_ref().is_none_or(|servers| servers.contains(server))
    }

    /// Whether its token has expired.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|end| now >= end)
    }

    /// Whether the store has not yet received a use in this second.
    pub(crate) fn is_new_use(&self, now: Timestamp) -> bool {
        let second = now.as_second();
        // Compared for equality, because the clock may have been set back.
        self.last_use.0.swap(second, Ordering::Relaxed) != second
    }

    /// Whether any call to this server could be allowed.
    pub(crate) fn may_call(&self, server: &str, now: Timestamp) -> bool {
        let allows = |active: &Arc<ActivePolicy>| active.policy.may_allow(server, now);
        self.expires.is_none_or(|end| now < end)
            && self.may_reach(server)
            && self.policy.as_ref().is_some_and(allows)
    }

    /// Whether the policy may hide something.
    pub fn may_hide(&self) -> bool {
        self.policy.as_ref().is_some_and(|policy| policy.policy.may_hide())
    }

    /// The hash of the policy, if it may hide something.
    pub fn hidden_by(&self) -> Option<Hash> {
        self.policy.as_ref().filter(|policy| policy.policy.may_hide())?.hash
    }

    /// Whether this tool of `server` is not listed.
    pub fn hides_tool(&self, server: &str, tool: &str, class: Class, now: Timestamp) -> bool {
        let active = self.policy.as_ref();
        let call = Call { server, tool, class, ..Call::default() };
        active.is_some_and(|active| !is_listed(&active.policy, &call, now))
    }

    /// Whether the tool of this call is not listed, under any of its names.
    pub fn hides_call(&self, call: &Call<'_>, now: Timestamp) -> bool {
        let active = self.policy.as_ref();
        active.is_some_and(|active| !is_listed(&active.policy, call, now))
    }

    /// Whether this is not listed: a tool or prompt by the server's own name, or a URI. `class`
    /// returns the risk class of a tool.
    pub fn hides(
        &self,
        kind: Kind,
        server: &str,
        own: &str,
        class: impl FnOnce() -> Class,
        now: Timestamp,
    ) -> bool {
        let Some(active) = &self.policy else { return false };
        let policy = &active.policy;
        match kind {
            Kind::Tools => {
                let call = Call { server, tool: own, class: class(), ..Call::default() };
                !is_listed(policy, &call, now)
            }
            Kind::Prompts => !policy.lists_prompt(own, now),
            Kind::Resources | Kind::Templates => !policy.lists_resource(own, now),
        }
    }
}

// === impl ActivePolicy ===

impl ActivePolicy {
    /// Activates a policy.
    pub fn new(policy: impl Into<Arc<Policy>>) -> Self {
        Self::of_version(policy, None)
    }

    /// Activates a version of a policy.
    pub fn of_version(policy: impl Into<Arc<Policy>>, version: Option<u64>) -> Self {
        let policy = policy.into();
        let paths = policy.argument_paths();
        Self {
            name: policy.name().into(),
            version,
            hash: Hash::parse(policy.hash()).ok(),
            paths: paths.iter().filter_map(|path| FactPath::parse(path)).collect(),
            policy,
        }
    }
}

#[cfg(test)]
mod tests;
