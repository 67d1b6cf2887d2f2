//! The answer to `initialize` on `/mcp`: the combined capabilities of all servers.

use serde_json::{Map, Value, json};
use toolgate_json::{peek, text};
use toolgate_mcp::{Request, Version, write};

use bytes::Bytes;
use toolgate_upstream::list_cache::Advertised;

use crate::downstream::links::Links;

/// The maximum length of one server's instructions, because models pay for every word.
const MAX_INSTRUCTIONS: usize = 16 * 1024;

/// Capabilities that are merged.
const UNITED: [&str; 3] = ["experimental", "extensions", "tasks"];

/// The protocol version for this agent, and the answer.
pub(crate) fn welcome(links: &Links, request: &Request<'_>) -> (Version, Bytes) {
    let wanted = request
        .params
        .and_then(|params| peek(params, &["protocolVersion"]).ok().flatten())
        .and_then(text)
        .and_then(|version| Version::parse(&version));
    let version = wanted.unwrap_or(Version::LATEST);
    let mut result = json!({
        "protocolVersion": version.as_str(),
        "capabilities": capabilities(links),
        "serverInfo": {"name": "toolgate", "version": env!("CARGO_PKG_VERSION")},
    });
    if let (Some(words), Some(result)) = (instructions(links), result.as_object_mut()) {
        result.insert("instructions".to_owned(), words.into());
    }
    (version, write::result(request.id, &result.to_string()))
}

/// The capabilities of at least one server. A server that was never listed may have any of them.
fn capabilities(links: &Links) -> Value {
    let offers: Vec<_> =
        links.iter().map(|link| link.server().list_cache.of(link.client_profile())).collect();
    let can = |what: &str| {
        offers
            .iter()
            .any(|advertised| advertised.as_ref().is_none_or(|advertised| advertised.can(what)))
    };
    let mut all = Map::new();
    // Servers may be added and removed while an agent is connected.
    all.insert("tools".to_owned(), json!({"listChanged": true}));
    let detailed = [
        ("prompts", json!({"listChanged": true})),
        ("resources", json!({"listChanged": true, "subscribe": true})),
        ("completions", json!({})),
        ("logging", json!({})),
    ];
    all.extend(
        detailed
            .into_iter()
            .filter(|(what, _)| can(what))
            .map(|(what, how)| (what.to_owned(), how)),
    );
    for what in UNITED {
        let united = united(what, offers.iter().flatten().map(AsRef::as_ref));
        if !united.is_empty() {
            all.insert(what.to_owned(), united.into());
        }
    }
    all.into()
}

/// The members of all servers under `what`; for equal keys the first server wins.
fn united<'a>(what: &str, offers: impl Iterator<Item = &'a Advertised>) -> Map<String, Value> {
    let mut all = Map::new();
    for advertised in offers {
        let raw = peek(&advertised.capabilities, &[what]).ok().flatten();
        let Some(Value::Object(one)) = raw.and_then(|raw| serde_json::from_str(raw).ok()) else {
            continue;
        };
        for (key, value) in one {
            all.entry(key).or_insert(value);
        }
    }
    all
}

/// The instructions of the servers, each under its name.
fn instructions(links: &Links) -> Option<String> {
    let mut all = Vec::new();
    for link in links.iter() {
        let Some(advertised) = link.server().list_cache.of(link.client_profile()) else { continue };
        let Some(words) = &advertised.instructions else { continue };
        let end = words.floor_char_boundary(MAX_INSTRUCTIONS);
        let words = words.get(..end).unwrap_or_default();
        all.push(format!("# {}\n{words}", link.server().name()));
    }
    (!all.is_empty()).then(|| format!("{HOW_NAMES_WORK}\n\n{}", all.join("\n\n")))
}

const HOW_NAMES_WORK: &str = "Several servers are behind this one. The name of a tool or prompt \
    begins with its server: `<server>__<name>`. The instructions of each server:";
