//! Reads a dump of an MCP registry, or one `server.json`.
//!
//! Accepted: one server; a list of servers; `{"servers": […]}` as `GET /v0/servers` of a registry
//! answers it, where each item is a server or has one under `server`.
//!
//! Invariant: everything here is text of strangers. Lengths and numbers are bounded, hidden characters
//! are drawn when it is read.
//! Start at [`read_registry`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hidden::draw;

/// One server of a registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryServer {
    /// Its name in reverse DNS form: `io.github.user/server`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What its author states about it.
    pub description: String,
    /// Where it can be installed from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<RegistryPackage>,
    /// Where it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remotes: Vec<RegistryRemote>,
}

/// A package of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryPackage {
    /// `npm`, `pypi`, `oci`, …
    pub registry: String,
    /// Its name there.
    pub identifier: String,
    /// Its version, if it is stated.
    pub version: Option<String>,
}

/// An address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryRemote {
    /// `streamable-http` or `sse`.
    pub transport: String,
    /// The address.
    pub url: String,
}

/// Why a dump cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// It is not JSON.
    #[error("not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    /// It has no servers.
    #[error("neither a server with a `name`, nor a list of them, nor an object with `servers`")]
    NoServers,
    /// It has too many.
    #[error("{0} servers, and {MAX_SERVERS} at most are read")]
    TooMany(usize),
    /// One of them has no name.
    #[error("server {0} of the dump has no `name`")]
    NoName(usize),
}

const MAX_SERVERS: usize = 50_000;
const MAX_NAME: usize = 256;
const MAX_TEXT: usize = 500;
/// Packages, and addresses, of one server.
const MAX_PLACES: usize = 16;

/// The servers of a dump, by name. Of several versions the one that is marked as the latest is kept,
/// else the last one.
pub fn read_registry(text: &str) -> Result<Vec<RegistryServer>, RegistryError> {
    let root: Value = serde_json::from_str(text)?;
    let items = match &root {
        Value::Array(items) => items.as_slice(),
        Value::Object(object) => match object.get("servers").and_then(Value::as_array) {
            Some(items) => items.as_slice(),
            None => std::slice::from_ref(&root),
        },
        _ => return Err(RegistryError::NoServers),
    };
    if items.len() > MAX_SERVERS {
        return Err(RegistryError::TooMany(items.len()));
    }
    let is_only = root.is_object() && root.get("servers").is_none();
    let mut found: BTreeMap<String, (bool, RegistryServer)> = BTreeMap::new();
    for (at, item) in items.iter().enumerate() {
        let object = item.get("server").filter(|server| server.is_object()).unwrap_or(item);
        let missing =
            || if is_only { RegistryError::NoServers } else { RegistryError::NoName(at + 1) };
        let server = server(object).ok_or_else(missing)?;
        let latest = is_latest(item);
        match found.get(&server.name) {
            Some((true, _)) if !latest => {}
            _ => {
                found.insert(server.name.clone(), (latest, server));
            }
        }
    }
    Ok(found.into_values().map(|(_, server)| server).collect())
}

fn server(object: &Value) -> Option<RegistryServer> {
    let name = text(object, &["name"], MAX_NAME).filter(|name| !name.is_empty())?;
    let version = text(object, &["version"], MAX_NAME)
        .or_else(|| text(object.get("version_detail")?, &["version"], MAX_NAME));
    let list = |key: &str| object.get(key).and_then(Value::as_array).map(Vec::as_slice);
    let places = |key| list(key).unwrap_or_default().iter().take(MAX_PLACES);
    Some(RegistryServer {
        name,
        version: version.unwrap_or_default(),
        description: text(object, &["description"], MAX_TEXT).unwrap_or_default(),
        packages: places("packages").filter_map(package).collect(),
        remotes: places("remotes").filter_map(remote).collect(),
    })
}

fn package(object: &Value) -> Option<RegistryPackage> {
    Some(RegistryPackage {
        registry: text(object, &["registryType", "registry_type", "registry_name"], MAX_NAME)?,
        identifier: text(object, &["identifier", "name"], MAX_NAME)?,
        version: text(object, &["version"], MAX_NAME),
    })
}

fn remote(object: &Value) -> Option<RegistryRemote> {
    Some(RegistryRemote {
        transport: text(object, &["type", "transport_type"], MAX_NAME)?,
        url: text(object, &["url"], MAX_TEXT)?,
    })
}

/// The first of these members that is a text: on one line, drawn and cut.
fn text(object: &Value, keys: &[&str], most: usize) -> Option<String> {
    let found = keys.iter().find_map(|key| object.get(key)?.as_str())?;
    let words: Vec<&str> = found.split_whitespace().collect();
    Some(draw(&words.join(" ")).chars().take(most).collect())
}

fn is_latest(item: &Value) -> bool {
    let official = |meta: &Value| {
        let entry = meta.get("io.modelcontextprotocol.registry/official")?;
        entry.get("isLatest").or_else(|| entry.get("is_latest"))?.as_bool()
    };
    item.get("_meta").and_then(official) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_dump_is_read() {
        let one = r#"{"name":"io.github.a/b","description":"Reads\n\u202ethings","version":"1.0.2",
            "packages":[{"registryType":"npm","identifier":"@a/b","version":"1.0.2","transport":{"type":"stdio"}}],
            "remotes":[{"type":"streamable-http","url":"https://a.example/mcp"}]}"#;
        let old = r#"{"name":"io.github.a/b","version_detail":{"version":"0.9"},
            "packages":[{"registry_name":"pypi","name":"b"}]}"#;
        for (dump, version, packages) in [
            (one.to_owned(), "1.0.2", "@a/b"),
            (old.to_owned(), "0.9", "b"),
            (format!("[{old},{one}]"), "1.0.2", "@a/b"),
            (format!(r#"{{"servers":[{one},{old}],"metadata":{{}}}}"#), "0.9", "b"),
            (
                format!(
                    r#"{{"servers":[{{"server":{one},"_meta":{{"io.modelcontextprotocol.registry/official":
                    {{"isLatest":true}}}}}},{{"server":{old}}}]}}"#
                ),
                "1.0.2",
                "@a/b",
            ),
        ] {
            let servers = read_registry(&dump).unwrap();
            assert_eq!(servers.len(), 1, "{dump}");
            assert_eq!(servers[0].version, version, "{dump}");
            assert_eq!(servers[0].packages[0].identifier, packages, "{dump}");
        }
        let found = read_registry(one).unwrap();
        assert_eq!(found[0].description, "Reads \\u{202E}things");
        assert_eq!(found[0].remotes[0].url, "https://a.example/mcp");
    }

    #[test]
    fn what_is_not_a_dump_is_refused() {
        for (dump, expected) in [
            ("", "not JSON"),
            ("1", "neither"),
            ("{}", "neither"),
            (r#"{"mcpServers":{}}"#, "neither"),
            (r#"[{"name":"a"},{"version":"1"}]"#, "server 2"),
            (r#"{"servers":[{"server":{"name":""}}]}"#, "server 1"),
        ] {
            let why = read_registry(dump).unwrap_err().to_string();
            assert!(why.contains(expected), "{dump}: {why}");
        }
        assert_eq!(read_registry("[]").unwrap(), []);
        let long = format!(r#"{{"name":"{}"}}"#, "a".repeat(9_000));
        assert_eq!(read_registry(&long).unwrap()[0].name.len(), MAX_NAME);
    }
}
