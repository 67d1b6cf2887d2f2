//! The list of tools that a grant sees.
//!
//! Invariant: a session that has lost its socket still counts until its grace ends, so that lists
//! do not flicker.
//! Invariant: nothing in a list depends on a session outside the grant's reach.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use toolgate_mcp::write;

use crate::machine::Sessions;
use crate::reach::Reach;
use crate::schema::{Variant, compose};
use crate::tool::Tool;

/// What a grant sees.
#[derive(Debug, Clone)]
pub struct Published {
    /// In order of their names.
    pub tools: Vec<PublishedTool>,
    /// Equal for equal lists.
    pub digest: [u8; 32],
}

/// One tool as agents see it.
#[derive(Debug, Clone)]
pub struct PublishedTool {
    /// The name that agents use.
    pub name: String,
    /// The name that clients use; policies match both.
    pub original: Arc<str>,
    /// The item of `tools/list`, raw JSON.
    pub json: String,
    /// How many sessions serve it; none if only the showcase has it.
    pub sessions: usize,
    /// The definitions behind it, all of them different, as their clients sent them.
    pub definitions: Vec<Arc<Tool>>,
}

impl Sessions {
    /// The list for a grant. It may be kept for as long as [`Sessions::revision`] stays.
    pub fn published(&self, reach: &Reach) -> Published {
        let tools: Vec<PublishedTool> = self
            .names(reach)
            .into_iter()
            .map(|(name, original)| self.publish(name, original, reach))
            .collect();
        let mut digest = Sha256::new();
        for tool in &tools {
            digest.update(tool.json.as_bytes());
            digest.update([0]);
        }
        Published { tools, digest: digest.finalize().into() }
    }

    fn publish(&self, name: String, original: Arc<str>, reach: &Reach) -> PublishedTool {
        let mut servers: Vec<(&str, &Arc<Tool>)> = Vec::new();
        for (uid, session) in self.servers_of(&original, reach) {
            servers.extend(session.tools.get(&original).map(|tool| (&**uid, tool)));
        }
        let sessions = servers.len();
        if servers.is_empty() {
            let entries = self.showcase.visible(reach);
            servers.extend(entries.filter_map(|e| Some(("", e.tools.get(&original)?))));
        }
        let definitions = different(servers.iter().map(|(_, tool)| *tool));
        let mut variants: BTreeMap<[u8; 32], Variant<'_>> = BTreeMap::new();
        for (uid, tool) in &servers {
            let schema = &tool.input_schema;
            let variant = variants
                .entry(schema.hash)
                .or_insert_with(|| Variant { schema, sessions: Vec::new() });
            if sessions > 0 {
                variant.sessions.push(*uid);
            }
        }
        let variants: Vec<Variant<'_>> = variants.into_values().collect();
        let schema = compose(&variants, self.settings.conflict);
        let json = item(&name, &original, self.settings.ascii_names, &schema, &definitions);
        PublishedTool { name, original, json, sessions, definitions }
    }
}

/// Equal tools are shared, so nearly always there is one.
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
    // What not all say is promised by none.
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
