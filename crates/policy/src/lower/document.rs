//! The top level of a document.

use std::collections::HashSet;

use jiff::{Timestamp, civil::Date, tz::TimeZone};

use super::{Reader, find, key_span, pointer};
use crate::{
    Class, Code,
    model::{Document, Entry, Loop, Shadow, ToolKey},
    problem::nearest,
    syntax::{Member, Node, Value, type_name},
};

const KEYS: [&str; 16] = [
    "version",
    "description",
    "mode",
    "shadow_until",
    "default",
    "list",
    "timezone",
    "hide",
    "loop",
    "all_tools",
    "classes",
    "tools",
    "resources",
    "prompts",
    "methods",
    "tests",
];

/// Lowers a whole document.
pub(crate) fn document(reader: &mut Reader<'_, '_>, root: &Node) -> Option<Document> {
    let members = reader.fields(root, "a policy", &KEYS)?;
    reader.version(root, members);
    if let Some(node) = find(members, "description") {
        reader.string(node, "description");
    }
    let (zone_name, zone) = reader.zone(members);
    if let Some(tools) = find(members, "tools") {
        reader.collect_states(tools);
    }
    let default_allow = reader.default_effect(root, members);
    let document = Document {
        shadow: reader.shadow(members),
        default_allow,
        list_all: reader.list_all(members),
        zone,
        zone_name,
        hide: find(members, "hide").map(|node| reader.hide(node)).unwrap_or_default(),
        repeat: find(members, "loop").and_then(|node| reader.repeat(node)),
        all_tools: find(members, "all_tools").and_then(|node| reader.all_tools(node)),
        classes: find(members, "classes").map(|node| reader.classes(node)).unwrap_or_default(),
        tools: find(members, "tools").map(|node| reader.tools(node)).unwrap_or_default(),
        resources: reader.section(members, "resources", default_allow),
        prompts: reader.section(members, "prompts", default_allow),
        methods: reader.section(members, "methods", default_allow),
        tests: find(members, "tests").map(|node| reader.scenarios(node)).unwrap_or_default(),
    };
    reader.global_counters(&document);
    Some(document)
}

impl Reader<'_, '_> {
    fn version(&mut self, root: &Node, members: &[Member]) {
        match find(members, "version") {
            None => self.missing(root.span, "the policy", "version", "version: \"1\""),
            Some(node) if matches!(node.value(), Value::Text("1")) => {}
            Some(node) => {
                let got = match node.value() {
                    Value::Text(text) => format!("`{text}`"),
                    Value::Number(text) => format!("the number `{text}`"),
                    _ => type_name(node).to_owned(),
                };
                self.findings.add(
                    Code::Version,
                    node.span,
                    format!("the version must be the string `\"1\"`, not {got}"),
                    "write `version: \"1\"`",
                );
            }
        }
    }

    fn default_effect(&mut self, root: &Node, members: &[Member]) -> bool {
        let words = [("allow", true), ("deny", false)];
        if let Some(node) = find(members, "default") {
            self.word(node, "default", &words).unwrap_or(false)
        } else {
            {
                self.findings.add(
                    Code::NoDefault,
                    root.span,
                    "the policy has no `default`",
                    "write `default: deny`, or `default: allow` (Intercept means `allow` if it is absent)",
                );
                false
            }
        }
    }

    /// Whether `list: all` lists tools under `(default deny)` too.
    fn list_all(&mut self, members: &[Member]) -> bool {
        let words = [("allowed", false), ("all", true)];
        find(members, "list").and_then(|node| self.word(node, "list", &words)).unwrap_or(false)
    }

    /// `mode` and `shadow_until`, of a document or of an entry.
    pub(super) fn shadow(&mut self, members: &[Member]) -> Shadow {
        let words = [("enforce", false), ("shadow", true)];
        let shadow =
            find(members, "mode").and_then(|node| self.word(node, "mode", &words)).unwrap_or(false);
        let Some(node) = find(members, "shadow_until") else {
            return if shadow { Shadow::Always } else { Shadow::No };
        };
        if !shadow {
            self.findings.add(
                Code::ShadowUntil,
                key_span(members, "shadow_until"),
                "`shadow_until` without `mode: shadow`",
                "add `mode: shadow`, or remove the date",
            );
        }
        match self.string(node, "shadow_until").map(date) {
            Some(Some(end)) if shadow => Shadow::Until(end),
            Some(None) => {
                self.findings.add(
                    Code::Date,
                    node.span,
                    "`shadow_until` is not a date",
                    "write `YYYY-MM-DD`, as in `2026-12-31`",
                );
                Shadow::No
            }
            _ => Shadow::No,
        }
    }

    fn zone(&mut self, members: &[Member]) -> (String, TimeZone) {
        let utc = || ("UTC".to_owned(), TimeZone::UTC);
        let Some(node) = find(members, "timezone") else { return utc() };
        let Some(name) = self.name(node, "timezone") else { return utc() };
        // Only IANA names; "local" or a POSIX string would depend on the machine.
        if let (Ok(zone), true) = (TimeZone::get(name), name == "UTC" || name.contains('/')) {
            return (name.to_owned(), zone);
        }
        let names: Vec<String> = jiff::tz::db().available().map(|n| n.to_string()).collect();
        let hint = match nearest(name, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "write an IANA name such as `Europe/Moscow`, or `UTC`".to_owned(),
        };
        self.findings.add(Code::Timezone, node.span, format!("unknown time zone `{name}`"), hint);
        utc()
    }

    fn hide(&mut self, node: &Node) -> Vec<ToolKey> {
        let mut seen = HashSet::new();
        let mut keys = Vec::new();
        for item in self.list(node, "hide") {
            let Some(text) = self.string(item, "an entry of `hide`") else { continue };
            if !seen.insert(text) {
                self.findings.add(
                    Code::DuplicateHide,
                    item.span,
                    format!("`hide` has `{text}` twice"),
                    "remove one of them, or correct its name",
                );
            }
            keys.extend(self.tool_key(text, item.span));
        }
        keys
    }

    fn repeat(&mut self, node: &Node) -> Option<Loop> {
        let members = self.fields(node, "`loop`", &["max", "window"])?;
        for (key, example) in [("max", "max: 20"), ("window", "window: minute")] {
            if find(members, key).is_none() {
                self.missing(node.span, "`loop`", key, example);
            }
        }
        let max = find(members, "max").and_then(|n| self.whole(n, "max", 1));
        let window = find(members, "window").and_then(|n| self.calendar_window(n));
        Some(Loop { max: max?, window: window? })
    }

    fn all_tools(&mut self, node: &Node) -> Option<Entry> {
        self.entry(node, "/all_tools", super::entry::Place::AllTools)
    }

    fn classes(&mut self, node: &Node) -> Vec<(Class, Entry)> {
        let Some(members) = self.members(node, "classes") else { return Vec::new() };
        let mut classes = Vec::new();
        for Member { key, value: node } in members {
            let Some(class) = self.class(&key.text, key.span) else { continue };
            let pointer = pointer("/classes", &key.text);
            if let Some(entry) = self.entry(node, &pointer, super::entry::Place::Class) {
                classes.push((class, entry));
            }
        }
        classes.sort_by_key(|(class, _)| *class);
        classes
    }

    fn tools(&mut self, node: &Node) -> Vec<(ToolKey, Box<Entry>)> {
        let Some(members) = self.members(node, "tools") else { return Vec::new() };
        let mut tools = Vec::new();
        for Member { key, value: node } in members {
            let tool_key = self.tool_key(&key.text, key.span);
            let pointer = pointer("/tools", &key.text);
            let entry = self.entry(node, &pointer, super::entry::Place::Tool(&key.text));
            if let (Some(tool_key), Some(entry)) = (tool_key, entry) {
                tools.push((tool_key, Box::new(entry)));
            }
        }
        tools
    }
}

/// 00:00 UTC of a day.
fn date(text: &str) -> Option<Timestamp> {
    let well_formed = text.len() == 10 && text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    let date: Date = well_formed.then(|| text.parse().ok())??;
    TimeZone::UTC.to_timestamp(date.at(0, 0, 0, 0)).ok()
}
