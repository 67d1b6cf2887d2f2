//! Which tool a name means, for people who ask about a call without making it.
//!
//! Invariant: without a server, a name is resolved as for a call on `/mcp` of the grant: built-ins,
//! then sessions in its reach, then servers in its reach. `tests/gateway/explain.rs` compares the
//! two.

use std::sync::Arc;

use toolgate_admission::access::Grant;
use toolgate_admission::list_kind::Kind;
use toolgate_admission::reserved::{SESSIONS, TOOLGATE};
use toolgate_json::fold;
use toolgate_policy::{self as policy, Class, similar};
use toolgate_session::KnownSessionTool;
use toolgate_upstream::link::Server;
use toolgate_upstream::list_cache::ClientProfile;
use toolgate_upstream::names::server_of_name;

use crate::aggregate::builtin;
use crate::gateway::Gateway;

/// How many similar names are suggested.
const SUGGESTIONS: usize = 3;

/// The tool that a name means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedTool {
    /// Its server; empty if the name belongs to none.
    pub server: Arc<str>,
    /// The server's own name of it.
    pub tool: Arc<str>,
    /// Its other names; policies match all of them.
    pub aliases: Arc<[Arc<str>]>,
    /// The class that a call of it is decided with.
    pub class: Class,
    /// No tool of this name can be called; these names are similar.
    pub unknown: Option<Vec<String>>,
}

impl Gateway {
    /// The tool that is meant by a name: of `server`, by its own name or one it is published under;
    /// without a server as a call on `/mcp` finds it, for the grant of this label.
    pub fn resolve_tool(
        &self,
        server: Option<&str>,
        tool: &str,
        grant: Option<&str>,
    ) -> ResolvedTool {
        let grant = grant.and_then(|label| self.admission().current(label));
        let names = Names { gateway: self, grant: grant.as_deref() };
        let server = server.filter(|server| !server.is_empty());
        let found = match server {
            Some(server) => names.of_server(server, tool),
            None => names.on_all(tool),
        };
        found.unwrap_or_else(|| names.unknown(server, tool))
    }

    /// The servers and tools that a policy is checked against; with a grant, those it can reach.
    pub fn known_for_policies(&self, grant: Option<&str>) -> policy::Known {
        let grant = grant.and_then(|label| self.admission().current(label));
        let names = Names { gateway: self, grant: grant.as_deref() };
        let known = |server: &str, name: &str, class| policy::KnownTool {
            server: server.to_owned(),
            name: name.to_owned(),
            class,
        };
        let built_ins = builtin::TABLE.iter().map(|one| known(TOOLGATE, one.name, one.class));
        let mut tools: Vec<policy::KnownTool> = built_ins.collect();
        let mut unlisted = Vec::new();
        for server in self.servers().iter().filter(|it| names.reaches(it)) {
            match server.list_cache.of(&ClientProfile::default()) {
                Some(listed) => tools.extend(
                    listed
                        .list(Kind::Tools)
                        .entries()
                        .map(|(name, _)| known(server.name(), name, server.class(name))),
                ),
                None => unlisted.push(server.name().to_owned()),
            }
        }
        if let Some(dial_in) = self.dial_in() {
            let published = dial_in.driver.tools(&names.sessions());
            let before = tools.len();
            for (shown, tool) in published.names() {
                let class = dial_in.class(tool);
                let aliases = tool.aliases.iter().map(|alias| &**alias);
                let names = aliases.chain([shown, &*tool.original]);
                tools.extend(names.map(|name| known(SESSIONS, name, class)));
            }
            // Without servers, the gateway is there for sessions, which have not come yet.
            if tools.len() == before && self.servers().is_empty() {
                unlisted.push(SESSIONS.to_owned());
            }
        }
        let servers = self.servers().iter().map(|server| server.name().to_owned()).collect();
        policy::Known { servers, tools: Some(tools), unlisted }
    }
}

/// The risk class of the built-in tool of this name.
pub fn built_in_class(name: &str) -> Option<Class> {
    builtin::class(name)
}

/// The names that a grant may use; without a grant, all of them.
struct Names<'g> {
    gateway: &'g Gateway,
    grant: Option<&'g Grant>,
}

impl Names<'_> {
    fn of_server(&self, server: &str, tool: &str) -> Option<ResolvedTool> {
        match server {
            TOOLGATE => self.built_in(tool),
            SESSIONS => self.session_tool(tool).or_else(|| self.session_tool_by_original(tool)),
            server => {
                let server = self.gateway.server(server).filter(|it| self.reaches(it))?;
                has(&server, tool).then(|| of(server.name(), tool, server.class(tool)))
            }
        }
    }

    /// As [`crate::aggregate`] routes a call.
    fn on_all(&self, tool: &str) -> Option<ResolvedTool> {
        let found = self.built_in(tool).or_else(|| self.session_tool(tool));
        found.or_else(|| self.prefixed(tool)).or_else(|| self.bare(tool)).or_else(|| {
            // As policies write it.
            let (server, own) = tool.split_once('/')?;
            self.of_server(server, own)
        })
    }

    fn built_in(&self, tool: &str) -> Option<ResolvedTool> {
        let mut there = builtin::TABLE
            .iter()
            .filter(|one| !one.of_sessions || self.gateway.dial_in().is_some());
        let found = there.find(|one| one.name == tool)?;
        Some(of(TOOLGATE, tool, found.class))
    }

    fn session_tool(&self, tool: &str) -> Option<ResolvedTool> {
        let dial_in = self.gateway.dial_in()?;
        let known = dial_in.driver.known(tool, &self.sessions())?;
        Some(self.of_session(&known))
    }

    fn session_tool_by_original(&self, tool: &str) -> Option<ResolvedTool> {
        let tools = self.gateway.dial_in()?.driver.tools(&self.sessions());
        let (_, known) = tools.names().find(|(_, known)| *known.original == *tool)?;
        Some(self.of_session(known))
    }

    fn of_session(&self, known: &KnownSessionTool) -> ResolvedTool {
        let class = self.gateway.dial_in().map(|dial_in| dial_in.class(known));
        ResolvedTool {
            server: SESSIONS.into(),
            tool: Arc::clone(&known.original),
            aliases: Arc::clone(&known.aliases),
            class: class.unwrap_or_default(),
            unknown: None,
        }
    }

    /// `server__tool` of a server that is not shown bare; one that was never listed is taken at its
    /// prefix.
    fn prefixed(&self, shown: &str) -> Option<ResolvedTool> {
        let server = self.reached(server_of_name(shown)?)?;
        let own = server.naming.own_name(shown).filter(|_| !server.naming.is_bare())?;
        has(&server, own).then(|| of(server.name(), own, server.class(own)))
    }

    /// A name of a server that is shown bare, unless it belongs to another by its prefix.
    fn bare(&self, shown: &str) -> Option<ResolvedTool> {
        let servers = self.gateway.servers();
        let mut bare = servers.iter().filter(|it| it.naming.is_bare() && self.reaches(it));
        let server = bare.find(|it| is_listed(it, shown) && !self.belongs_to_another(it, shown))?;
        Some(of(server.name(), shown, server.class(shown)))
    }

    fn belongs_to_another(&self, server: &Server, shown: &str) -> bool {
        let folded = fold(shown);
        let owner = server_of_name(&folded).and_then(|name| self.reached(name));
        builtin::TABLE.iter().any(|one| one.name == folded)
            || owner.is_some_and(|owner| owner.name() != server.name())
    }

    /// The policy decides an unknown name by its prefix, if that is a server, and by the class that
    /// the name implies.
    fn unknown(&self, server: Option<&str>, tool: &str) -> ResolvedTool {
        let names = self.all(server);
        let similar = similar(tool, names.iter().map(String::as_str), SUGGESTIONS);
        let unknown = Some(similar.into_iter().map(str::to_owned).collect());
        if let Some(server) = server {
            let class = self.reached(server).map(|server| server.class(tool));
            let class = class.unwrap_or_else(|| Class::by_name(tool));
            return ResolvedTool { unknown, ..of(server, tool, class) };
        }
        let prefix = server_of_name(tool).and_then(|name| self.reached(name));
        let own = prefix.as_ref().and_then(|server| server.naming.own_name(tool));
        let (server, own) = match (&prefix, own) {
            (Some(server), Some(own)) => (server.name(), own),
            _ => ("", tool),
        };
        ResolvedTool { unknown, ..of(server, own, Class::by_name(own)) }
    }

    /// Every name that could have been meant.
    fn all(&self, server: Option<&str>) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        if server.is_none_or(|server| server == TOOLGATE) {
            names.extend(builtin::TABLE.iter().map(|one| one.name.to_owned()));
        }
        if server.is_none_or(|server| server == SESSIONS)
            && let Some(dial_in) = self.gateway.dial_in()
        {
            let tools = dial_in.driver.tools(&self.sessions());
            names.extend(tools.names().map(|(shown, _)| shown.to_owned()));
        }
        for one in self.gateway.servers().iter().filter(|it| self.reaches(it)) {
            let Some(listed) = one.list_cache.of(&ClientProfile::default()) else { continue };
            let own = listed.list(Kind::Tools);
            match server {
                None => {
                    names
                        .extend(own.entries().map(|(name, _)| one.naming.shown(Kind::Tools, name)));
                }
                Some(server) if server == one.name() => {
                    names.extend(own.entries().map(|(name, _)| name.to_owned()));
                }
                Some(_) => {}
            }
        }
        names
    }

    fn reached(&self, server: &str) -> Option<Arc<Server>> {
        self.gateway.server(server).filter(|it| self.reaches(it))
    }

    fn reaches(&self, server: &Server) -> bool {
        self.grant.is_none_or(|grant| grant.may_reach(server.name()))
    }

    fn sessions(&self) -> Arc<toolgate_session::Reach> {
        self.grant.map(|grant| Arc::clone(&grant.sessions)).unwrap_or_default()
    }
}

fn of(server: &str, tool: &str, class: Class) -> ResolvedTool {
    let (server, tool) = (server.into(), tool.into());
    ResolvedTool { server, tool, aliases: Arc::default(), class, unknown: None }
}

/// Whether a server has a tool, as far as is known.
fn has(server: &Server, own: &str) -> bool {
    let listed = server.list_cache.of(&ClientProfile::default());
    listed.is_none_or(|listed| listed.list(Kind::Tools).has(own))
}

fn is_listed(server: &Server, own: &str) -> bool {
    let listed = server.list_cache.of(&ClientProfile::default());
    listed.is_some_and(|listed| listed.list(Kind::Tools).has(own))
}
