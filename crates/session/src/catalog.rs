//! The list of tools that a grant sees.
//!
//! Invariant: a disconnected session is listed until its grace period ends, so that lists do not
//! flicker.
//! Invariant: nothing in a list depends on a session outside the grant's reach.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use toolgate_mcp::write;

use crate::machine::SessionMachine;
use crate::names::{KindDefinition, offer};
use crate::reach::Reach;
use crate::schema::{Variant, compose};
use crate::tool::{Tool, Tools};

/// The tools that a grant sees.
#[derive(Debug, Clone)]
pub struct Published {
    /// In order of their names.
    pub tools: Vec<PublishedTool>,
    /// Equal for equal lists.
    pub digest: [u8; 32],
}

/// One tool as shown to agents.
#[derive(Debug, Clone)]
pub struct PublishedTool {
    /// The name that agents use.
    pub name: String,
    /// The name that clients use.
    pub original: Arc<str>,
    /// Its other names; policies match all of them.
    pub aliases: Arc<[Arc<str>]>,
    /// The item of `tools/list`, raw JSON.
    pub json: String,
    /// The number of sessions that serve it; 0 if only the showcase has it.
    pub sessions: usize,
    /// The distinct definitions behind it, as their clients sent them.
    pub definitions: Vec<Arc<Tool>>,
    /// The same by kind, including showcase entries.
    pub offered: Arc<[KindDefinition]>,
}

impl SessionMachine {
    /// The list for a grant. It may be cached until [`SessionMachine::revision`] changes.
    pub fn published(&self, reach: &Reach) -> Published {
        let groups = self.groups(reach);
        let live = groups.iter().map(|group| (group.sessions.as_slice(), group.kind, group.tools));
        let kept = self.showcase.visible(reach);
        let kept = kept.map(|entry| (&[][..], entry.key.kind.as_str(), &*entry.tools));
        let (live, kept) = (by_name(live), by_name(kept));
        let tools: Vec<PublishedTool> = self
            .names(reach)
            .into_iter()
            .map(|(name, original)| {
                let (live, kept) = (live.get(&*original), kept.get(&*original));
                let servers = live.or(kept).map(Vec::as_slice).unwrap_or_default();
                let mut offered = Vec::new();
                for (_, kind, tool) in live.into_iter().chain(kept).flatten() {
                    offer(&mut offered, kind, tool);
                }
                self.publish((name, original), servers, offered)
            })
            .collect();
        let mut digest = Sha256::new();
        for tool in &tools {
            digest.update(tool.json.as_bytes());
            digest.update([0]);
        }
        Published { tools, digest: digest.finalize().into() }
    }

    /// Whether any session declares an output schema for the tool: see
    /// [`crate::SessionFailure::result`].
    pub fn has_output_schema(&self, name: &str, reach: &Reach) -> bool {
        let Some(original) = self.original(name, reach) else { return false };
        let live = self.servers_of(&original, reach).map(|(_, session)| &session.tools);
        let kept = self.showcase.visible(reach).map(|entry| &entry.tools);
        let mut tools = live.chain(kept).filter_map(|tools| tools.get(&original));
        tools.any(|tool| tool.has_output_schema())
    }

    /// The sessions that a grant sees, grouped by kind and list of tools.
    fn groups(&self, reach: &Reach) -> Vec<Group<'_>> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        let mut known: HashMap<(*const Tools, &str), usize> = HashMap::new();
        for (uid, session) in self.by_uid.iter().filter(|(uid, _)| self.serves(uid, reach)) {
            let kind = session.card.kind.as_str();
            let at = *known.entry((Arc::as_ptr(&session.tools), kind)).or_insert_with(|| {
                groups.push(Group { tools: &session.tools, kind, sessions: Vec::new() });
                groups.len() - 1
            });
            if let Some(group) = groups.get_mut(at) {
                group.sessions.push(uid);
            }
        }
        groups
    }

    fn publish(
        &self,
        (name, original): (String, Arc<str>),
        servers: &[Server<'_>],
        offered: Vec<KindDefinition>,
    ) -> PublishedTool {
        let sessions = servers.iter().map(|(sessions, ..)| sessions.len()).sum();
        let definitions = different(servers.iter().map(|(.., tool)| *tool));
        let mut variants: BTreeMap<[u8; 32], Variant<'_>> = BTreeMap::new();
        for (uids, _, tool) in servers {
            let schema = &tool.input_schema;
            let variant = variants
                .entry(schema.hash)
                .or_insert_with(|| Variant { schema, sessions: Vec::new() });
            variant.sessions.extend(*uids);
        }
        let mut variants: Vec<Variant<'_>> = variants.into_values().collect();
        for variant in &mut variants {
            variant.sessions.sort_unstable();
        }
        let schema = compose(&variants, self.settings.conflict);
        let json = item(&name, &original, self.settings.ascii_names, &schema, &definitions);
        let aliases = self.aliases(&original, &name);
        let offered = offered.into();
        PublishedTool { name, original, aliases, json, sessions, definitions, offered }
    }
}

/// Sessions of one kind with the same list of tools.
struct Group<'a> {
    tools: &'a Tools,
    kind: &'a str,
    sessions: Vec<&'a str>,
}

/// The sessions that serve this definition of a tool (none if only the showcase has it), and their
/// kind.
type Server<'a> = (&'a [&'a str], &'a str, &'a Arc<Tool>);

/// The tools by name: each name is looked up once.
fn by_name<'a>(
    lists: impl Iterator<Item = (&'a [&'a str], &'a str, &'a Tools)>,
) -> HashMap<&'a str, Vec<Server<'a>>> {
    let mut named: HashMap<&str, Vec<Server<'_>>> = HashMap::new();
    for (sessions, kind, tools) in lists {
        for (name, tool) in tools {
            named.entry(name).or_default().push((sessions, kind, tool));
        }
    }
    named
}

/// Equal tools are shared, so there is nearly always one.
fn different<'a>(tools: impl Iterator<Item = &'a Arc<Tool>>) -> Vec<Arc<Tool>> {
    let mut different: Vec<Arc<Tool>> = Vec::new();
    for tool in tools {
        if !different.iter().any(|known| Arc::ptr_eq(known, tool)) {
            different.push(Arc::clone(tool));
        }
    }
    different
}

fn item(name: &str, original: &str, ascii: bool, schema: &str, tools: &[Arc<Tool>]) -> String {
    let mut out = format!(r#"{{"name":{}"#, write::quote(name));
    let translated = ascii && !original.is_ascii();
    let title = if translated {
        Some(original)
    } else {
        tools.iter().find_map(|tool| tool.title.as_deref())
    };
    let description = tools.iter().find_map(|tool| tool.description.as_deref());
    for (key, text) in [("title", title), ("description", description)] {
        if let Some(text) = text {
            out.extend([",\"", key, "\":", &write::quote(text)]);
        }
    }
    out.push_str(r#","inputSchema":"#);
    out.push_str(schema);
    // Advertise only what every session declares.
    if let Some((first, rest)) = tools.split_first() {
        for (key, raw) in &first.extras {
            let said =
                |tool: &Arc<Tool>| tool.extras.get(key).is_some_and(|other| same(other, raw));
            if rest.iter().all(said) {
                out.extend([",\"", key, "\":", raw.get()]);
            }
        }
    }
    out.push('}');
    out
}

fn same(a: &RawValue, b: &RawValue) -> bool {
    a.get() == b.get()
}
