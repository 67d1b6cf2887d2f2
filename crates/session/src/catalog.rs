//! The list of tools that a grant sees.
//!
//! It is made in two steps: [`SessionMachine::list_source`] collects who serves what, which needs the machine
//! and copies no definition; [`ListSource::tools`] writes the list, which takes time and memory that grow
//! with the definitions, and needs only what was collected.
//!
//! Invariant: a session that has lost its socket is listed until its grace ends, so that lists do
//! not flicker.
//! Invariant: nothing in a list depends on a session outside the grant's reach.
//! Invariant: lists that differ have different digests; a digest is made without the list.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use toolgate_json::quote;

use crate::machine::SessionMachine;
use crate::names::{KindDefinition, offer};
use crate::reach::Reach;
use crate::registration::SessionInfo;
use crate::schema::{MAX_LISTED, ServingSession, Variant, compose};
use crate::settings::{SchemaConflict, Selectors, SessionSettings};
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

/// What the list of a grant is made of.
#[derive(Debug)]
pub struct ListSource {
    tools: Vec<SourceTool>,
    conflict: SchemaConflict,
    selectors: Selectors,
    ascii_names: bool,
}

#[derive(Debug)]
struct SourceTool {
    name: String,
    original: Arc<str>,
    aliases: Arc<[Arc<str>]>,
    servers: Vec<Server>,
    offered: Arc<[KindDefinition]>,
}

impl SessionMachine {
    /// The list for a grant. It may be kept for as long as [`SessionMachine::revision`] stays.
    pub fn published(&self, reach: &Reach) -> Published {
        let source = self.list_source(reach);
        Published { tools: source.tools().collect(), digest: source.digest() }
    }

    /// What the list for a grant is made of.
    pub fn list_source(&self, reach: &Reach) -> ListSource {
        let groups = self.groups(reach);
        let live = groups.iter().map(|group| {
            let sessions: Sessions = group.sessions.as_slice().into();
            (sessions, group.kind, group.tools)
        });
        let none: Sessions = [].into();
        let kept = self.showcase.visible(reach);
        let kept = kept.map(|entry| (Arc::clone(&none), entry.key.kind.as_str(), &*entry.tools));
        let (mut live, mut kept) = (by_name(live), by_name(kept));
        let tools = self.names(reach).into_iter().map(|(name, original)| {
            let (live, kept) = (live.remove(&*original), kept.remove(&*original));
            let mut offered = Vec::new();
            for (kind, Server { tool, .. }) in live.iter().chain(&kept).flatten() {
                offer(&mut offered, kind, tool);
            }
            let servers = live.or(kept).into_iter().flatten().map(|(_, server)| server).collect();
            let aliases = self.aliases(&original, &name);
            SourceTool { name, original, aliases, servers, offered: offered.into() }
        });
        let tools = tools.collect();
        let SessionSettings { conflict, selectors, ascii_names, .. } = self.settings;
        ListSource { tools, conflict, selectors, ascii_names }
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
                group.sessions.push((Arc::clone(uid), Arc::clone(&session.card)));
            }
        }
        groups
    }
}

impl ListSource {
    /// The tools as agents see them, each written when it is asked for.
    pub fn tools(&self) -> impl Iterator<Item = PublishedTool> {
        self.tools.iter().map(|tool| tool.publish(self))
    }

    /// Equal for equal lists.
    pub fn digest(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        digest.update([
            u8::from(self.ascii_names),
            u8::from(self.conflict == SchemaConflict::Merged),
            u8::from(self.selectors == Selectors::Any),
        ]);
        for tool in &self.tools {
            tool.add_to(&mut digest, self.conflict);
        }
        digest.finalize().into()
    }
}

impl SourceTool {
    fn publish(&self, list: &ListSource) -> PublishedTool {
        let definitions = self.definitions();
        let schema = compose(&self.variants(), list.conflict, list.selectors);
        let json = item(&self.name, &self.original, list.ascii_names, &schema, &definitions);
        PublishedTool {
            name: self.name.clone(),
            original: Arc::clone(&self.original),
            aliases: Arc::clone(&self.aliases),
            json,
            sessions: self.servers.iter().map(|server| server.sessions.len()).sum(),
            definitions,
            offered: Arc::clone(&self.offered),
        }
    }

    /// Everything that [`SourceTool::publish`] writes depends on what is added here.
    fn add_to(&self, digest: &mut Sha256, conflict: SchemaConflict) {
        for text in [self.name.as_str(), &self.original] {
            digest.update(text.len().to_be_bytes());
            digest.update(text);
        }
        for definition in self.definitions() {
            digest.update(definition.shown);
        }
        let variants = self.variants();
        let branches = conflict == SchemaConflict::OneOf && variants.len() > 1;
        let count: usize = variants.iter().map(|variant| variant.sessions.len()).sum();
        if count > MAX_LISTED && !branches {
            return digest.update([u8::MAX]);
        }
        let mut sessions: Vec<(usize, ServingSession<'_>)> = Vec::new();
        for (index, variant) in variants.iter().enumerate() {
            let branch = if branches { index } else { 0 };
            sessions.extend(variant.sessions.iter().map(|session| (branch, *session)));
        }
        sessions.sort_unstable();
        for (branch, session) in sessions {
            digest.update(branch.to_be_bytes());
            for text in [session.session_id, session.infobase_name, session.kind] {
                digest.update(text.len().to_be_bytes());
                digest.update(text);
            }
        }
        digest.update([0]);
    }

    /// The definitions behind it. Equal tools are shared, so there is nearly always one.
    fn definitions(&self) -> Vec<Arc<Tool>> {
        let mut different: Vec<Arc<Tool>> = Vec::new();
        for Server { tool, .. } in &self.servers {
            if !different.iter().any(|known| Arc::ptr_eq(known, tool)) {
                different.push(Arc::clone(tool));
            }
        }
        different
    }

    /// Its different schemas in order of their hashes, each with its sessions.
    fn variants(&self) -> Vec<Variant<'_>> {
        let mut variants: BTreeMap<[u8; 32], Variant<'_>> = BTreeMap::new();
        for Server { sessions, tool } in &self.servers {
            let schema = &tool.input_schema;
            let variant = variants
                .entry(schema.hash)
                .or_insert_with(|| Variant { schema, sessions: Vec::new() });
            variant.sessions.extend(sessions.iter().map(|(uid, card)| ServingSession {
                session_id: uid,
                infobase_name: &card.infobase_name,
                kind: &card.kind,
            }));
        }
        let mut variants: Vec<Variant<'_>> = variants.into_values().collect();
        for variant in &mut variants {
            variant.sessions.sort_unstable();
        }
        variants
    }
}

/// Sessions of one kind with the same list of tools.
struct Group<'a> {
    tools: &'a Tools,
    kind: &'a str,
    sessions: Vec<(Arc<str>, Arc<SessionInfo>)>,
}

/// The ids and descriptions of sessions.
type Sessions = Arc<[(Arc<str>, Arc<SessionInfo>)]>;

/// A definition and the sessions that serve it; no session if only the showcase has it.
#[derive(Debug)]
struct Server {
    sessions: Sessions,
    tool: Arc<Tool>,
}

/// The definitions of each name, each with the kind of its sessions.
fn by_name<'a>(
    lists: impl Iterator<Item = (Sessions, &'a str, &'a Tools)>,
) -> HashMap<&'a str, Vec<(&'a str, Server)>> {
    let mut named: HashMap<&str, Vec<(&str, Server)>> = HashMap::new();
    for (sessions, kind, tools) in lists {
        for (name, tool) in tools {
            let server = Server { sessions: Arc::clone(&sessions), tool: Arc::clone(tool) };
            named.entry(name).or_default().push((kind, server));
        }
    }
    named
}

fn item(name: &str, original: &str, ascii: bool, schema: &str, tools: &[Arc<Tool>]) -> String {
    let mut out = format!(r#"{{"name":{}"#, quote(name));
    let translated = ascii && !original.is_ascii();
    let title = if translated {
        Some(original)
    } else {
        tools.iter().find_map(|tool| tool.title.as_deref())
    };
    if let Some(title) = title {
        out.extend([r#","title":"#, &quote(title)]);
    }
    if let Some(description) = tools.iter().find_map(|tool| tool.raw_description()) {
        out.extend([r#","description":"#, description]);
    }
    out.push_str(r#","inputSchema":"#);
    out.push_str(schema);
    // Advertise only what every session declares.
    if let Some((first, rest)) = tools.split_first() {
        for (key, raw) in &first.extras {
            let declared =
                |tool: &Arc<Tool>| tool.extras.get(key).is_some_and(|other| same(other, raw));
            if rest.iter().all(declared) {
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
