//! What is known of servers and their tools, for people.
//!
//! Invariant: nothing here asks a server; what was never heard is not known.

use std::sync::Arc;

use toolgate_admission::list_kind::Kind;
use toolgate_admission::reserved::{SESSIONS, TOOLGATE};
use toolgate_audit::Hash;
use toolgate_mcp::{Edit, members, peek, text, write};
use toolgate_policy::{Class, canonical_json};
use toolgate_upstream::link::Server;
use toolgate_upstream::list_cache::Audience;
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
                .offers
                .of(&Audience::default())
                .map(|offer| offer.list(Kind::Tools).len()),
        };
        self.servers().iter().map(|server| known(server)).collect()
    }

    /// Every tool that was heard of, by server in their configured order.
    pub fn known_tools(&self) -> Vec<KnownTool> {
        let mut tools = Vec::new();
        for server in self.servers().iter() {
            let Some(offer) = server.offers.of(&Audience::default()) else { continue };
            tools.extend(offer.list(Kind::Tools).entries().map(|(name, shown)| KnownTool {
                server: server.name().to_owned(),
                name: name.to_owned(),
                class: server.class(name),
                fingerprint: fingerprint(&server.naming, name, shown),
            }));
        }
        tools
    }

    /// The risk class that a call of this tool is decided with.
    pub fn class_of(&self, server: &str, tool: &str) -> Class {
        let known = match server {
            TOOLGATE => builtin::class(tool),
            SESSIONS => self.desk().map(|desk| desk.class(tool)),
            _ => self.server(server).map(|server| server.class(tool)),
        };
        known.unwrap_or_else(|| Class::by_name(tool))
    }

    /// What clients call a session tool and its other names, by any of its names.
    pub fn names_of(&self, server: &str, tool: &str) -> (Arc<str>, Arc<[Arc<str>]>) {
        let desk = self.desk().filter(|_| server == SESSIONS);
        let showing = desk.map(|desk| desk.sessions.showing(&Arc::default()));
        let found = showing.as_ref().and_then(|showing| {
            let mut names = showing.names();
            names.find(|(shown, known)| *shown == tool || *known.original == *tool)
        });
        match found {
            Some((_, known)) => (Arc::clone(&known.original), Arc::clone(&known.aliases)),
            None => (tool.into(), Arc::default()),
        }
    }

    /// How many agent sessions are open.
    pub fn agent_sessions(&self) -> usize {
        self.open_sessions()
    }
}

/// Of a definition as its server wrote it: the entry that is shown, with the server's own names in
/// it again. The canonical form spells everything else alike.
fn fingerprint(naming: &Naming, own: &str, shown: &str) -> Option<Hash> {
    let [name, meta] = members(shown, ["name", "_meta"]).ok()?;
    let widget = meta.and_then(|meta| peek(meta, &["ui", "resourceUri"]).ok().flatten());
    let own_widget = widget.and_then(text).and_then(|uri| naming.own_uri(&uri));
    let mut edit = Edit::new(shown).replace(name?, write::quote(own)).ok()?;
    if let (Some(widget), Some(own)) = (widget, own_widget) {
        edit = edit.replace(widget, write::quote(&own)).ok()?;
    }
    let definition = edit.finish();
    let canonical = canonical_json(std::str::from_utf8(&definition).ok()?).ok()?;
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
                tools.map(|raw| canonical_json(raw).ok().map(|text| Hash::of(text.as_bytes())));
            assert_eq!(found.collect::<Vec<_>>(), expected);
        }
    }
}
