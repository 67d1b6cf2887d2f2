//! Access: who may call, and what binds them.
//!
//! Everything in force at one moment is one value, made anew on every change and swapped as a
//! whole, so that a request is under exactly one state of it.
//!
//! Invariant: tokens are known only by their SHA-256.
//! Invariant: a grant without a policy may nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use toolgate_audit::{FactPath, Hash};
use toolgate_policy::{Class, Effect, Policy, is_hidden};
use toolgate_session::Reach;

use crate::lists::Kind;
use crate::server::Server;

/// Everything in force.
#[derive(Debug, Default)]
pub struct Access {
    /// Who calls without a token; nobody may if there is none.
    pub local: Option<Arc<Grant>>,
    /// Who calls with one, by the SHA-256 of the token.
    pub by_token: HashMap<Hash, Arc<Grant>>,
}

/// Whoever calls: a label, what it may reach, and its policy.
#[derive(Debug, Default)]
pub struct Grant {
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
    /// When its token ends.
    pub expires: Option<Timestamp>,
}

/// A policy that decides.
#[derive(Debug)]
pub struct InForce {
    /// The compiled document.
    pub policy: Policy,
    pub(crate) name: Arc<str>,
    pub(crate) hash: Option<Hash>,
    /// What `arguments: facts` writes down.
    pub(crate) paths: Vec<FactPath>,
}

// === impl Access ===

impl Access {
    /// Whose a request with this token, or without one, is; none if it is nobody's.
    pub fn caller(&self, token: Option<&str>, now: Timestamp) -> Option<Arc<Grant>> {
        let grant = match token {
            None => self.local.as_ref()?,
            Some(token) => self.by_token.get(&Hash::of(token.as_bytes()))?,
        };
        grant.expires.is_none_or(|end| now < end).then(|| Arc::clone(grant))
    }

    /// The grant of this label as it is now.
    pub(crate) fn of_label(&self, label: &str) -> Option<&Arc<Grant>> {
        self.local.iter().chain(self.by_token.values()).find(|grant| *grant.label == *label)
    }
}

// === impl Grant ===

impl Grant {
    /// Whether it may know of this server at all.
    pub fn may_reach(&self, server: &str) -> bool {
        self.servers.as_ref().is_none_or(|servers| servers.contains(server))
    }

    /// Whether some of what there is may be hidden from it.
    pub(crate) fn may_hide(&self) -> bool {
        self.policy.as_ref().is_some_and(|policy| policy.policy.may_hide())
    }

    /// Whether it must not see this tool of `server`.
    pub(crate) fn hides_tool(
        &self,
        server: &str,
        tool: &str,
        class: Class,
        now: Timestamp,
    ) -> bool {
        let in_force = self.policy.as_ref();
        in_force.is_some_and(|in_force| is_hidden(&in_force.policy, server, tool, class, now))
    }

    /// Whether it must not see this: the server's own name of a tool or prompt, or a URI.
    pub(crate) fn hides(&self, kind: Kind, server: &Server, own: &str, now: Timestamp) -> bool {
        let Some(in_force) = &self.policy else { return false };
        let policy = &in_force.policy;
        match kind {
            Kind::Tools => is_hidden(policy, server.name(), own, server.class(own), now),
            Kind::Prompts => policy.decide_prompt(own, now).effect == Effect::Hide,
            Kind::Resources | Kind::Templates => {
                policy.decide_resource(own, now).effect == Effect::Hide
            }
        }
    }
}

// === impl InForce ===

impl InForce {
    /// Puts a policy in force.
    pub fn new(policy: Policy) -> Self {
        let paths = policy.argument_paths();
        Self {
            name: policy.name().into(),
            hash: Hash::parse(policy.hash()).ok(),
            paths: paths.iter().filter_map(|path| FactPath::parse(path)).collect(),
            policy,
        }
    }
}
