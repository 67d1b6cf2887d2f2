//! `v8project.yaml`: the configuration of an existing installation, accepted unchanged.
//!
//! Its settings are translated into those of `toolgate.yaml` and keep their positions, so that
//! problems name the line of the original file. Settings of other programs in that file are
//! ignored. Settings that only `toolgate.yaml` has may be given under a key `toolgate`, and take
//! precedence.
//!
//! Start at [`is_one`] and [`DropIn::translate`]; `toolgate import` writes the same as a file.

pub(crate) mod written;

use std::path::{Path, PathBuf};

use crate::finding::Span;
use crate::problem::code;
use crate::reader::Reader;
use crate::syntax::{Entry, Key, Kind, Node, Scalar};
use crate::value::TokenHash;

/// Settings without a key in `toolgate.yaml`.
#[derive(Debug, Default)]
pub(crate) struct DropIn {
    pub(crate) cache_file: Option<PathBuf>,
    pub(crate) token: Option<TokenHash>,
}

/// Keys of `mcp.session_manager` that are also keys of `sessions`.
const SESSIONS: [&str; 6] = [
    "path",
    "heartbeat_interval_ms",
    "reconnection_grace_secs",
    "graceful_kill_grace_ms",
    "ws_ping_interval_ms",
    "ws_ping_timeout_ms",
];

/// The name of the grant made from `auth_token`, and of its policy.
pub(crate) const GRANT: &str = "v8project";
pub(crate) const POLICY: &str = "v8project-allow";

/// Whether the document is such a file.
pub(crate) fn is_one(root: &Node) -> bool {
    let has = |key: &str| find(root, &[key]).is_some();
    !has("version")
        && !has("servers")
        && ["workPath", "mcp", "toolsCache", "tools_cache"].into_iter().any(has)
}

impl DropIn {
    /// The same settings in the form of `toolgate.yaml`.
    pub(crate) fn translate(root: &Node, reader: &mut Reader<'_>) -> (Node, Self) {
        refuse_masking(root, reader);
        let mut drop_in = Self::default();
        let mut whole = Section::default();
        whole.put("version", scalar("1", Span::default()));
        let work = find(root, &["workPath"]);
        if let Some(node) = work {
            whole.put("data", scalar(&format!("{}/toolgate", text(node)), node.span));
        }
        let manager = |key: &str| find(root, &["mcp", "session_manager", key]);
        let http = |key: &str| find(root, &["mcp", "http", key]);
        let mut listen = Section::default();
        listen.take("sessions", manager("bind_address"));
        listen.take("mcp", http("bind_address"));
        listen.take("metrics", find(root, &["mcp", "metrics", "bind_address"]));
        whole.section("listen", listen);

        let mut sessions = Section::default();
        for key in SESSIONS {
            sessions.take(key, manager(key));
        }
        let cache = |keys: [&str; 2]| {
            let sections = ["toolsCache", "tools_cache"].into_iter();
            let mut places = sections.flat_map(|section| keys.map(|key| [section, key]));
            places.find_map(|place| find(root, &place))
        };
        sessions.take("reported_idle_secs", manager("idle_timeout_secs"));
        sessions.take("cache", cache(["enabled", "enabled"]));
        let life = cache(["cache_life_period", "cacheLifePeriod"]);
        if let Some(node) = life {
            let written = human_time(&text(node)).unwrap_or_else(|| text(node));
            sessions.put("cache_life_period", scalar(&written, node.span));
        }
        whole.section("sessions", sessions);

        let mut agents = Section::default();
        agents.take("max", http("max_sessions"));
        agents.seconds("idle", http("idle_ttl_secs"));
        whole.section("agent_sessions", agents);
        let grace = find(root, &["mcp", "execution", "shutdown_grace_period_secs"]);
        whole.seconds("shutdown_grace", grace);

        if let Some(own) = find(root, &["toolgate"]) {
            whole.overlay(own);
        }
        warn_of_idle(manager("idle_timeout_secs"), reader);
        warn_of_path(http("path"), reader);
        drop_in.token = http("auth_token")
            .map(text)
            .filter(|token| !token.is_empty())
            .map(|token| TokenHash::of(&token));
        let beside = || Some(PathBuf::from(text(work?)).join("tools_cache.json"));
        let named = cache(["storage_path", "storagePath"]).map(|node| PathBuf::from(text(node)));
        drop_in.cache_file = named.or_else(beside).map(|file| reader.path(file));
        (whole.node(root.span), drop_in)
    }

    /// The same settings as the text of a `toolgate.yaml`, which has the token as its hash.
    pub(crate) fn write(&self, translated: &Node) -> String {
        let mut whole = Section::default();
        whole.overlay(translated);
        if let Some(token) = self.token {
            let mut policy = Section::default();
            policy.put("version", quoted("1"));
            policy.put("default", scalar("allow", Span::default()));
            let (mut policies, mut own) = (Section::default(), Section::default());
            policies.section(POLICY, policy);
            own.section("policies", policies);
            whole.overlay(&own.node(Span::default()));
            let mut grant = Section::default();
            grant.put("label", scalar(GRANT, Span::default()));
            grant.put("token_sha256", quoted(&token.to_hex()));
            grant.put("policy", scalar(POLICY, Span::default()));
            whole.append("grants", grant.node(Span::default()));
        }
        let remark = "converted from v8project.yaml; check it with `toolgate config check`";
        written::document(remark, &whole.node(Span::default()))
    }

    /// The `tools_cache.json` that belongs to it.
    pub(crate) fn cache_file(&self) -> Option<&Path> {
        self.cache_file.as_deref()
    }
}

fn warn_of_idle(node: Option<&Node>, reader: &mut Reader<'_>) {
    let Some(node) = node else { return };
    if text(node).parse().is_ok_and(|secs: u64| secs > 0) {
        let message = "programs are told this idle timeout as before, and nothing is closed by it";
        let hint = "to hide or end idle sessions, use `sessions: { idle_timeout_secs, idle }` of toolgate.yaml";
        reader.warn(code::CONFLICT, node.span, message.to_owned(), hint.to_owned());
    }
}

fn warn_of_path(node: Option<&Node>, reader: &mut Reader<'_>) {
    let Some(node) = node else { return };
    let path = text(node);
    if path.trim_end_matches('/') != "/mcp" {
        let message = format!("agents find toolgate at `/mcp`, not at `{path}`");
        let hint = "change the address in the agents' settings".to_owned();
        reader.warn(code::CONFLICT, node.span, message, hint);
    }
}

/// Rejects a promise that this version cannot keep.
fn refuse_masking(root: &Node, reader: &mut Reader<'_>) {
    for place in [&["masking"][..], &["mcp", "masking"]] {
        if let Some(node) = find(root, place) {
            let message = "`masking` is not supported yet, and it will not be ignored silently";
            let hint = "remove it if unmasked results may pass";
            reader.error_hint(code::CONFLICT, node.span, message, hint);
        }
    }
}

/// A mapping under construction.
#[derive(Default)]
struct Section(Vec<Entry>);

impl Section {
    fn put(&mut self, key: &str, value: Node) {
        let key = Key { text: key.to_owned(), span: value.span };
        self.0.push(Entry { key, value });
    }

    fn take(&mut self, key: &str, node: Option<&Node>) {
        if let Some(node) = node.filter(|node| !matches!(node.kind, Kind::Null)) {
            self.put(key, node.clone());
        }
    }

    /// Appends an item to a list.
    fn append(&mut self, key: &str, item: Node) {
        let known = self.0.iter_mut().find(|known| known.key.text == key);
        match known.map(|known| &mut known.value.kind) {
            Some(Kind::List(items)) => items.push(item),
            _ => self.put(key, Node { kind: Kind::List(vec![item]), span: Span::default() }),
        }
    }

    /// The values of `node` replace those here; mappings are merged.
    fn overlay(&mut self, node: &Node) {
        let Kind::Map { entries, .. } = &node.kind else { return };
        for entry in entries {
            let known = self.0.iter_mut().find(|known| known.key.text == entry.key.text);
            let Some(known) = known else {
                self.0.push(entry.clone());
                continue;
            };
            if let (Kind::Map { entries, .. }, Kind::Map { .. }) =
                (&mut known.value.kind, &entry.value.kind)
            {
                let mut joined = Self(std::mem::take(entries));
                joined.overlay(&entry.value);
                *entries = joined.0;
            } else {
                known.value = entry.value.clone();
            }
        }
    }

    /// Whole seconds, as `toolgate.yaml` writes them.
    fn seconds(&mut self, key: &str, node: Option<&Node>) {
        if let Some(node) = node.filter(|node| !matches!(node.kind, Kind::Null)) {
            self.put(key, scalar(&format!("{}s", text(node)), node.span));
        }
    }

    fn section(&mut self, key: &str, section: Self) {
        let span = section.0.first().map(|entry| entry.value.span).unwrap_or_default();
        self.put(key, section.node(span));
    }

    fn node(self, span: Span) -> Node {
        Node { kind: Kind::Map { entries: self.0, dropped: Vec::new() }, span }
    }
}

fn quoted(text: &str) -> Node {
    let scalar = Scalar { text: text.to_owned(), plain: false };
    Node { kind: Kind::Scalar(scalar), span: Span::default() }
}

fn scalar(text: &str, span: Span) -> Node {
    Node { kind: Kind::Scalar(Scalar { text: text.to_owned(), plain: true }), span }
}

fn text(node: &Node) -> String {
    match &node.kind {
        Kind::Scalar(scalar) => scalar.text.clone(),
        _ => String::new(),
    }
}

fn find<'a>(node: &'a Node, path: &[&str]) -> Option<&'a Node> {
    let Some((first, rest)) = path.split_first() else { return Some(node) };
    let Kind::Map { entries, .. } = &node.kind else { return None };
    find(&entries.iter().find(|entry| entry.key.text == *first)?.value, rest)
}

/// A time as humantime writes it (`5days`, `1h 30min`), in seconds.
fn human_time(written: &str) -> Option<String> {
    let compact: String = written.split_whitespace().collect();
    let (mut rest, mut total) = (compact.as_str(), 0_u64);
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (unit, next) =
            after.split_at(after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len()));
        let secs: u64 = match unit {
            "s" | "sec" | "secs" | "second" | "seconds" => 1,
            "m" | "min" | "mins" | "minute" | "minutes" => 60,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600,
            "d" | "day" | "days" => 86_400,
            "w" | "week" | "weeks" => 604_800,
            _ => return None,
        };
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(secs)?)?;
        rest = next;
    }
    (!compact.is_empty()).then(|| format!("{total}s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_other_manager() {
        for (written, expected) in [
            ("5days", Some("432000s")),
            ("5d", Some("432000s")),
            ("1h 30min", Some("5400s")),
            ("2weeks 1s", Some("1209601s")),
            ("", None),
            ("soon", None),
            ("5", None),
        ] {
            assert_eq!(human_time(written).as_deref(), expected, "{written}");
        }
    }
}
