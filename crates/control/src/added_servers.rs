//! Servers that were added at run time, parsed like those of a `toolgate.yaml` in the data folder.
//!
//! A server of the file takes precedence over an added one of the same name ([`servers`]).

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use toolgate_config::{Config, Problem, ServerConfig, render};
use toolgate_policy::Severity;
use toolgate_store::Document;

use crate::finding::Finding;
use crate::literal_secrets::literal_secrets;
use crate::surroundings::ThisProcess;

/// The space of the store with added servers.
pub const SERVERS: &str = "servers";

/// The code that the configuration has for a literal secret.
const LITERAL_SECRET: &str = "TG1016";

/// Parses added servers.
#[derive(Debug)]
pub struct AddedServers {
    /// A file in the data folder, where relative paths begin.
    file: PathBuf,
    /// Servers whose literal secrets were logged.
    warned: Mutex<HashSet<String>>,
}

impl AddedServers {
    /// Relative paths of entries begin in the data folder.
    pub fn new(data: &Path) -> Self {
        let data = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
        Self { file: data.join("server"), warned: Mutex::default() }
    }

    /// Everything that is wrong with an entry (a JSON object) for a server of this name; warnings if
    /// it can be used.
    pub fn check(&self, name: &str, entry: &str) -> Result<Vec<Finding>, Vec<Finding>> {
        self.checked(name, entry).map(|(_, warnings)| warnings)
    }

    /// The server of an entry and warnings, if the entry can be used.
    pub(crate) fn checked(
        &self,
        name: &str,
        entry: &str,
    ) -> Result<(ServerConfig, Vec<Finding>), Vec<Finding>> {
        let findings =
            |problems: &[Problem]| problems.iter().map(Finding::of_config).collect::<Vec<_>>();
        let (parsed, warnings) = self.parse(name, entry).map_err(|problems| findings(&problems))?;
        let literals: Vec<Finding> = literal_secrets(entry).iter().map(|it| literal(it)).collect();
        if literals.is_empty() { Ok((parsed, findings(&warnings))) } else { Err(literals) }
    }

    /// The entries that can be used; the others are logged.
    pub(crate) fn parse_all(&self, kept: &[Document]) -> Vec<ServerConfig> {
        let mut servers = Vec::new();
        for kept in kept {
            match self.parse(&kept.key, &kept.json) {
                Ok((server, _)) => {
                    self.warn(&kept.key, &kept.json);
                    servers.push(server);
                }
                Err(problems) => {
                    let why = render(&problems);
                    tracing::error!(server = %kept.key, "added server cannot be used:\n{why}");
                }
            }
        }
        servers
    }

    /// An entry of an older version may hold a literal secret; that is logged once.
    fn warn(&self, name: &str, entry: &str) {
        let found = literal_secrets(entry);
        if !found.is_empty() && self.warned.lock().insert(name.to_owned()) {
            tracing::warn!(
                server = name,
                "the database holds {} of this server in clear; remove it and add it again with \
                 `env:NAME` or `file:PATH`",
                found.join(", ")
            );
        }
    }

    /// The server of an entry, and warnings.
    fn parse(&self, name: &str, entry: &str) -> Result<(ServerConfig, Vec<Problem>), Vec<Problem>> {
        let name = serde_json::Value::from(name);
        let text = format!("{{\"version\":1,\"servers\":{{{name}:{entry}}}}}");
        let loaded = Config::parse(&text, &self.file, &ThisProcess)?;
        let server = loaded.config.servers.into_iter().next().ok_or_else(Vec::new)?;
        Ok((server, loaded.warnings))
    }
}

fn literal(place: &str) -> Finding {
    let message = format!("`{place}` looks like a secret, and the database would hold it in clear");
    Finding {
        code: LITERAL_SECRET.into(),
        severity: Severity::Error,
        line: 0,
        column: 0,
        text: message.clone(),
        message,
        hint: "write `env:NAME` or `file:PATH` instead".to_owned(),
    }
}

/// The servers of the file, then the added ones that the file does not shadow.
pub(crate) fn servers(config: &Config, added: Vec<ServerConfig>) -> Vec<ServerConfig> {
    let mut servers = config.servers.clone();
    for server in added {
        if servers.iter().any(|other| other.name == server.name) {
            tracing::warn!(
                server = server.name,
                "added server shadowed by the server of the same name in toolgate.yaml"
            );
        } else {
            servers.push(server);
        }
    }
    servers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_config::config;

    fn kept(name: &str, json: &str) -> Document {
        Document { space: SERVERS.into(), key: name.into(), json: json.into() }
    }

    #[test]
    fn the_file_takes_precedence_over_an_added_server() {
        let file = config("servers: { s: { url: 'http://127.0.0.1:1/' } }");
        let added = AddedServers::new(Path::new("/data")).parse_all(&[
            kept("s", r#"{"url":"http://127.0.0.1:2/"}"#),
            kept("t", r#"{"url":"http://127.0.0.1:3/"}"#),
        ]);
        let all = servers(&file, added);
        assert_eq!(all.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["s", "t"]);
        assert_eq!(all.first(), file.servers.first());
    }

    #[test]
    fn an_entry_that_cannot_be_used_harms_no_other() {
        let added = AddedServers::new(Path::new("/data")).parse_all(&[
            kept("bad", r#"{"ulr":"http://127.0.0.1:2/"}"#),
            kept("good", r#"{"url":"http://127.0.0.1:3/"}"#),
        ]);
        assert_eq!(added.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["good"]);
    }

    #[test]
    fn literal_secrets_are_refused_by_their_place() {
        let entries = AddedServers::new(Path::new("/data"));
        let entry = r#"{"command":"server","env":{"API_KEY":"abc"}}"#;
        let findings = entries.check("s", entry).unwrap_err();
        let [finding] = findings.as_slice() else { panic!("{findings:?}") };
        assert_eq!(finding.code, LITERAL_SECRET);
        assert!(finding.message.starts_with("`env.API_KEY`"), "{finding:?}");
        assert_eq!(entries.check("s", r#"{"url":"http://127.0.0.1:3/"}"#), Ok(Vec::new()));
    }

    #[test]
    fn warnings_do_not_prevent_the_use_of_an_entry() {
        let entries = AddedServers::new(Path::new("/data"));
        let warnings = entries.check("s", r#"{"command":"npx -y some-server"}"#).unwrap();
        let codes: Vec<&str> = warnings.iter().map(|warning| &*warning.code).collect();
        assert_eq!(codes, ["TG1020"]);
    }
}
