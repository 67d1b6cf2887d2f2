//! Access: who may call, and what binds them.
//!
//! Everything in force at one moment is one value, made anew on every change and swapped as a
//! whole, so that a request is under exactly one state of it.
//!
//! Invariant: tokens are known only by their SHA-256. They are found by it, so how long finding
//! takes says nothing about a token: nobody can steer the hash of a guess towards another's.
//! Invariant: a grant without a policy may nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use tokio::sync::{Semaphore, SemaphorePermit};
use toolgate_audit::{FactPath, Hash};
use toolgate_policy::{Call, Class, Policy, is_call_hidden, is_hidden};
use toolgate_session::Reach;

use crate::list_kind::Kind;

/// Everything in force.
#[derive(Debug, Default)]
pub struct Access {
    /// Who calls without a token; nobody may if there is none.
    pub local: Option<Arc<Grant>>,
    /// Who calls with one, by the SHA-256 of the token.
    by_token: HashMap<TokenHash, Arc<Grant>>,
    by_label: HashMap<Arc<str>, Arc<Grant>>,
    /// What people have stopped.
    pub frozen: Frozen,
    /// The generation of the store that this was made of; none where nothing in it can change.
    pub generation: Option<u64>,
}

/// The SHA-256 of a token.
#[derive(Debug, Clone, Copy, Eq, std::hash::Hash)]
#[expect(clippy::derived_hash_with_manual_eq, reason = "it compares as a derived one would")]
struct TokenHash(Hash);

/// What people have stopped.
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

/// Whoever calls: a label, what it may reach, and its policy.
#[derive(Debug, Default)]
pub struct Grant {
    /// Its id in the store; none if it is not kept there.
    pub id: Option<Arc<str>>,
    /// Its name; unique.
    pub label: Arc<str>,
    /// Whom it stands for.
    pub identity: Option<Arc<str>>,
    /// Groups of that identity.
    pub groups: Vec<String>,
    /// Servers it may reach; all if absent.
    pub servers: Option<HashSet<String>>,
    /// Sessions it may reach; all by default.
    pub sessions: Arc<Reach>,
    /// What decides its calls; none denies them all.
    pub policy: Option<Arc<InForce>>,
    /// The SHA-256 of its token; none if it has no token. Another token ends its agent sessions.
    pub token: Option<Hash>,
    /// When its token ends.
    pub expires: Option<Timestamp>,
    /// When the store was last told that it is used.
    pub last_told: LastTold,
    /// How many of its requests the store is asked about at once.
    pub places: Places,
    /// Whether a person tries out a server with it: then it may list, and nothing else.
    pub is_trial: bool,
}

/// Places of a grant before the store. The others of its requests wait here, so that the requests
/// of one grant never fill the store's queue.
#[derive(Debug)]
pub struct Places(Semaphore);

/// Requests of one grant that the store is asked about at once.
const PLACES: usize = 512;

impl Default for Places {
    fn default() -> Self {
        Self(Semaphore::new(PLACES))
    }
}

impl Places {
    /// A place, when one is free.
    pub async fn take(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.0.acquire().await.ok()
    }
}

/// The second in which the store was last told of a use.
#[derive(Debug, Default)]
pub struct LastTold(AtomicI64);

/// A policy that decides.
#[derive(Debug)]
pub struct InForce {
    /// The compiled document.
    pub policy: Arc<Policy>,
    /// Its name.
    pub name: Arc<str>,
    /// Its version in the store.
    pub(crate) version: Option<u64>,
    /// Equal for equal documents.
    pub hash: Option<Hash>,
    /// What `arguments: facts` writes down.
    pub(crate) paths: Vec<FactPath>,
}

// === impl Access ===

impl Access {
    /// What is in force for these. Labels and tokens are unique; of two alike the last one counts.
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

    /// Whose a request with this token, or without one, is; none if it is nobody's.
    pub fn caller(&self, token: Option<&str>, now: Timestamp) -> Option<Arc<Grant>> {
        let grant = match token {
            None => self.local.as_ref()?,
            Some(token) => self.by_token.get(&TokenHash(Hash::of(token.as_bytes())))?,
        };
        (!grant.has_expired(now)).then(|| Arc::clone(grant))
    }

    /// A grant that was looked up before, as it is now. Where nothing can change, it is as it was.
    pub(crate) fn current<'a>(&'a self, held: &'a Grant) -> Option<&'a Grant> {
        let unchanged = (self.generation.is_none() || held.is_trial).then_some(held);
        self.of_label(&held.label).map(|grant| &**grant).or(unchanged)
    }

    /// The grant of this label as it is now.
    pub(crate) fn of_label(&self, label: &str) -> Option<&Arc<Grant>> {
        let local = self.local.as_ref().filter(|grant| *grant.label == *label);
        local.or_else(|| self.by_label.get(label))
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
    /// The same of a call that goes to a session, if it does.
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

    /// What of a call is stopped, in words; none if nothing is.
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
    /// Whether it may know of this server at all.
    pub fn may_reach(&self, server: &str) -> bool {
        self.servers.as_ref().is_none_or(|servers| servers.contains(server))
    }

    /// Whether its token has ended by then.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|end| now >= end)
    }

    /// Whether its use at this time is news to the store, which keeps whole seconds.
    pub(crate) fn is_used_anew(&self, now: Timestamp) -> bool {
        let second = now.as_second();
        // Not the latest: a clock that was ahead and is no more would keep it silent.
        self.last_told.0.swap(second, Ordering::Relaxed) != second
    }

    /// Whether a call of it to this server can be allowed at all.
    pub(crate) fn may_call(&self, server: &str, now: Timestamp) -> bool {
        let allows = |in_force: &Arc<InForce>| in_force.policy.may_allow(server, now);
        self.expires.is_none_or(|end| now < end)
            && self.may_reach(server)
            && self.policy.as_ref().is_some_and(allows)
    }

    /// Whether some of what there is may be hidden from it.
    pub fn may_hide(&self) -> bool {
        self.policy.as_ref().is_some_and(|policy| policy.policy.may_hide())
    }

    /// The policy that may hide some of what there is from it.
    pub fn hidden_by(&self) -> Option<Hash> {
        self.policy.as_ref().filter(|policy| policy.policy.may_hide())?.hash
    }

    /// Whether it must not see this tool of `server`.
    pub fn hides_tool(&self, server: &str, tool: &str, class: Class, now: Timestamp) -> bool {
        let in_force = self.policy.as_ref();
        in_force.is_some_and(|in_force| is_hidden(&in_force.policy, server, tool, class, now))
    }

    /// Whether it must not see the tool of this call, under whatever name.
    pub fn hides_call(&self, call: &Call<'_>, now: Timestamp) -> bool {
        let in_force = self.policy.as_ref();
        in_force.is_some_and(|in_force| is_call_hidden(&in_force.policy, call, now))
    }

    /// Whether it must not see this: the server's own name of a tool or prompt, or a URI. `class`
    /// is asked for the risk class of a tool.
    pub fn hides(
        &self,
        kind: Kind,
        server: &str,
        own: &str,
        class: impl FnOnce() -> Class,
        now: Timestamp,
    ) -> bool {
        let Some(in_force) = &self.policy else { return false };
        let policy = &in_force.policy;
        match kind {
            Kind::Tools => is_hidden(policy, server, own, class(), now),
            Kind::Prompts => !policy.lists_prompt(own, now),
            Kind::Resources | Kind::Templates => !policy.lists_resource(own, now),
        }
    }
}

// === impl InForce ===

impl InForce {
    /// Puts a policy in force.
    pub fn new(policy: impl Into<Arc<Policy>>) -> Self {
        Self::of_version(policy, None)
    }

    /// Puts a version of a policy in force.
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
