//! The definition of one tool, for a person who reviews it.
//!
//! Invariant: nothing here sends a request to a server.

use std::sync::Arc;

use toolgate_admission::list_kind::Kind;
use toolgate_admission::reserved::SESSIONS;
use toolgate_audit::Hash;
use toolgate_policy::Class;
use toolgate_upstream::list_cache::ClientProfile;
use toolgate_upstream::pins::{Facts, Reason};

use crate::dial_in::pin_key;
use crate::gateway::Gateway;

/// A definition under review.
#[derive(Debug, Clone)]
pub struct KnownDefinition {
    /// The server.
    pub server: String,
    /// The server's own name of the tool.
    pub name: String,
    /// The name under which it is pinned.
    pub key: String,
    /// Its risk class.
    pub class: Class,
    /// The newest definition.
    pub facts: Arc<Facts>,
    /// Why it is quarantined, if it is.
    pub quarantine: Option<Reason>,
    /// The fingerprint of the definition that may be used.
    pub approved: Option<Hash>,
    /// That definition, if it was short enough to be kept.
    pub approved_definition: Option<Arc<str>>,
}

/// Why a definition cannot be approved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotApprovable {
    /// The tool was never listed.
    #[error("there is no tool `{tool}` of `{server}`; `toolgate tool list` shows names")]
    Unknown {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
    },
    /// The definition has another fingerprint by now.
    #[error(
        "the definition of `{tool}` has another fingerprint by now{}; review it again",
        .now.map(|now| format!(" ({now})")).unwrap_or_default()
    )]
    Changed {
        /// The tool.
        tool: String,
        /// Its current fingerprint.
        now: Option<Hash>,
    },
}

impl Gateway {
    /// The definitions of the tool of this name: one of a server; of sessions, one for each kind
    /// and distinct definition.
    pub fn definitions(&self, server: &str, tool: &str) -> Vec<KnownDefinition> {
        if server == SESSIONS {
            return self.session_definitions(|original| original == tool);
        }
        self.server_definition(server, tool).into_iter().collect()
    }

    /// The definitions that a person approves with this fingerprint.
    pub fn approvable(
        &self,
        server: &str,
        tool: &str,
        fingerprint: Hash,
    ) -> Result<Vec<KnownDefinition>, NotApprovable> {
        let mut known = self.definitions(server, tool);
        let Some(first) = known.first() else {
            return Err(NotApprovable::Unknown { server: server.into(), tool: tool.into() });
        };
        let now = first.facts.fingerprint;
        known.retain(|known| known.facts.fingerprint == Some(fingerprint));
        if known.is_empty() {
            return Err(NotApprovable::Changed { tool: tool.into(), now });
        }
        Ok(known)
    }

    /// Quarantined tools of sessions.
    pub fn quarantined_session_tools(&self) -> Vec<KnownDefinition> {
        let mut all = self.session_definitions(|_| true);
        all.retain(|known| known.quarantine.is_some());
        all
    }

    fn server_definition(&self, server: &str, tool: &str) -> Option<KnownDefinition> {
        let server = self.server(server)?;
        let listed = || {
            let advertised = server.list_cache.of(&ClientProfile::default())?;
            advertised.list(Kind::Tools).facts(tool).cloned()
        };
        let facts = server.pins().newest_of(tool).or_else(listed)?;
        let baseline = server.pins().baseline(tool);
        let quarantine = server.quarantine(tool, &facts);
        // What is renamed is compared with what it was.
        let former = match &quarantine {
            Some(Reason::Renamed(old)) => server.pins().baseline(old),
            _ => None,
        };
        Some(KnownDefinition {
            server: server.name().to_owned(),
            name: tool.to_owned(),
            key: tool.to_owned(),
            class: server.class(tool),
            quarantine,
            facts,
            approved: baseline.as_ref().map(|pin| pin.fingerprint),
            approved_definition: baseline.or(former).and_then(|pin| pin.definition),
        })
    }

    fn session_definitions(&self, is_it: impl Fn(&str) -> bool) -> Vec<KnownDefinition> {
        let Some(dial_in) = self.dial_in() else { return Vec::new() };
        let tools = dial_in.driver.tools(&Arc::default());
        let mut found: Vec<KnownDefinition> = Vec::new();
        for (_, known) in tools.names().filter(|(_, known)| is_it(&known.original)) {
            for offered in &*known.offered {
                let key = pin_key(&offered.kind, &known.original);
                let facts = dial_in.facts(&offered.tool);
                let is_same = |other: &KnownDefinition| {
                    other.key == key && other.facts.fingerprint == facts.fingerprint
                };
                if found.iter().any(is_same) {
                    continue;
                }
                let baseline = self.pins(SESSIONS).baseline(&key);
                found.push(KnownDefinition {
                    server: SESSIONS.to_owned(),
                    name: known.original.to_string(),
                    class: dial_in.class_of_kind(&offered.kind, &offered.tool),
                    quarantine: dial_in.quarantine(&offered.kind, &offered.tool),
                    key,
                    facts,
                    approved: baseline.as_ref().map(|pin| pin.fingerprint),
                    approved_definition: baseline.and_then(|pin| pin.definition),
                });
            }
        }
        found
    }
}
