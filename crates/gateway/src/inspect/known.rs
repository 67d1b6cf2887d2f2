//! What is known of servers and their tools, for people.
//!
//! Invariant: nothing here asks a server; what was never heard is not known.

use std::sync::Arc;

use toolgate_admission::list_kind::Kind;
use toolgate_admission::reserved::{SESSIONS, TOOLGATE};
use toolgate_audit::Hash;
use toolgate_json::{Edit, canonical, members, peek, quote, text};
use toolgate_policy::Class;
use toolgate_upstream::link::Server;
use toolgate_upstream::list_cache::ClientProfile;
use toolgate_upstream::names::Naming;

use crate::aggregate::builtin;
use crate::gateway::Gateway;

/// A tool as its server was last heard to describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownTool {
    /// The server.
    pub server: String,
    /// The server's own name of it.
    pub name: String,
    /// Its risk class.
    pub class: Class,
    /// SHA-256 over its canonical definition; none if that is no JSON to be compared.
    pub fingerprint: Option<Hash>,
}

/// The tool that is meant by a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its server; empty if no server has it.
    pub server: Arc<str>,
    /// The server's own name of it.
    pub tool: Arc<str>,
    /// Its other names; policies match all of them.
    pub aliases: Arc<[Arc<str>]>,
    /// The class that a call of it is decided with.
    pub class: Class,
}

/// A server as the gateway has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownServer {
    /// Its name.
    pub name: String,
    /// How many tools it was last heard to have; none if it was never heard.
    pub tools: Option<usize>,
}

impl Gateway {
    /// The servers, in their configured order.
    pub fn known_servers(&self) -> Vec<KnownServer> {
        let known = |server: &Server| KnownServer {
            name: server.name().to_owned(),
            tools: server
                .list_cache
                .of(&ClientProfile::default())
                .map(|advertised| advertised.list(Kind::Tools).len()),
        };
        self.servers().iter().map(|server| known(server)).collect()
    }

    /// Every tool that was heard of, by server in their configured order.
    pub fn known_tools(&self) -> Vec<KnownTool> {
        let mut tools = Vec::new();
        for server in self.servers().iter() {
            let Some(advertised) = server.list_cache.of(&ClientProfile::default()) else {
                continue;
            };
            tools.extend(advertised.list(Kind::Tools).entries().map(|(name, shown)| KnownTool {
                server: server.name().to_owned(),
                name: name.to_owned(),
                class: server.class(name),
                fingerprint: fingerprint(&server.naming, name, shown),
            }));
        }
        tools
    }

    /// The tool that is meant by a name: of `server`, by its own name or one it is published under;
    /// without a server as a call on `/mcp` would find it, for the grant of this label.
    pub fn named(&self, server: Option<&str>, tool: &str, grant: Option<&str>) -> Named {
        let of = |server: &str, tool: &str, class: Class| Named {
            server: server.into(),
            tool: tool.into(),
            aliases: Arc::default(),
            class,
        };
        match server.filter(|server| !server.is_empty()) {
            Some(TOOLGATE) => of(TOOLGATE, tool, class_of_built_in(tool)),
            Some(SESSIONS) => self
                .session_tool(tool, grant, true)
                .unwrap_or_else(|| of(SESSIONS, tool, Class::by_name(tool))),
            Some(server) => {
                let class = self.server(server).map(|server| server.class(tool));
                of(server, tool, class.unwrap_or_else(|| Class::by_name(tool)))
            }
            None => {
                if builtin::class(tool).is_some() {
                    return of(TOOLGATE, tool, class_of_built_in(tool));
                }
                if let Some(named) = self.session_tool(tool, grant, false) {
                    return named;
                }
                let servers = self.servers();
                let own = servers.iter().find_map(|server| {
                    let own = server.naming.own_name(tool).filter(|own| *own != tool)?;
                    Some(of(server.name(), own, server.class(own)))
                });
                own.unwrap_or_else(|| of("", tool, Class::by_name(tool)))
            }
        }
    }

    /// The session tool that is published under this name, or, if `by_original`, called so by its
    /// clients.
    fn session_tool(&self, tool: &str, grant: Option<&str>, by_original: bool) -> Option<Named> {
        let dial_in = self.dial_in()?;
        let grant = grant.and_then(|label| self.admission().current(label));
        let reach = grant.map(|grant| Arc::clone(&grant.sessions)).unwrap_or_default();
        let tools = dial_in.driver.tools(&reach);
        let published = || tools.names().find(|(shown, _)| *shown == tool);
        let original = || tools.names().find(|(_, known)| *known.original == *tool);
        let (_, known) = published().or_else(|| original().filter(|_| by_original))?;
        Some(Named {
            server: SESSIONS.into(),
            tool: Arc::clone(&known.original),
            aliases: Arc::clone(&known.aliases),
            class: dial_in.class(known),
        })
    }

    /// How many agent sessions are open.
    pub fn agent_sessions(&self) -> usize {
        self.open_sessions()
    }
}

fn class_of_built_in(tool: &str) -> Class {
    builtin::class(tool).unwrap_or_else(|| Class::by_name(tool))
}

/// Of a definition as its server wrote it: the entry that is shown, with the server's own names in
/// it again. The canonical form spells everything else alike.
fn fingerprint(naming: &Naming, own: &str, shown: &str) -> Option<Hash> {
    let [name, meta] = members(shown, ["name", "_meta"]).ok()?;
    let widget = meta.and_then(|meta| peek(meta, &["ui", "resourceUri"]).ok().flatten());
    let own_widget = widget.and_then(text).and_then(|uri| naming.own_uri(&uri));
    let mut edit = Edit::new(shown).replace(name?, quote(own)).ok()?;
    if let (Some(widget), Some(own)) = (widget, own_widget) {
        edit = edit.replace(widget, quote(&own)).ok()?;
    }
    let definition = edit.finish();
    let canonical = canonical(std::str::from_utf8(&definition).ok()?).ok()?;
    Some(Hash::of(canonical.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_upstream::lists::Builder;

    #[test]
    fn a_fingerprint_is_over_what_the_server_wrote() {
        let tools = [
            r#"{"inputSchema":{"type":"object"}, "name":"a", "x":1.0}"#,
            r#"{"name":"b","_meta":{"ui":{"resourceUri":"ui://w/1","k":[1e5]}}}"#,
            r#"{"name":"\u0063\"d","title":"C"}"#,
        ];
        for bare in [false, true] {
            let naming = Naming::new("files", bare);
            let mut builder = Builder::new(Kind::Tools, &naming);
            builder.add(&format!(r#"{{"tools":[{}]}}"#, tools.join(","))).unwrap();
            let list = builder.finish();
            let found = list.entries().map(|(own, shown)| fingerprint(&naming, own, shown));
            let expected =
                tools.map(|raw| canonical(raw).ok().map(|text| Hash::of(text.as_bytes())));
            assert_eq!(found.collect::<Vec<_>>(), expected);
        }
    }
}
