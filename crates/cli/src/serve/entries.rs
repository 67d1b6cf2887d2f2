//! Servers that were added at run time: read as if they stood in a `toolgate.yaml` of the data
//! folder.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use toolgate_admin::{Entries, Flaw};
use toolgate_config::{Config, Problem, ServerConfig};
use toolgate_store::Document;

use super::certificate::Here;
use super::literals::literals;

/// Reads entries; their relative paths begin in the data folder.
pub(crate) struct KeptServers {
    /// Only its folder counts.
    file: PathBuf,
    /// Servers that the log was told of.
    told: Mutex<HashSet<String>>,
}

/// As the configuration has it.
const LITERAL_SECRET: &str = "TG1016";

impl KeptServers {
    pub(crate) fn new(data: &Path) -> Self {
        let data = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
        Self { file: data.join("server"), told: Mutex::default() }
    }

    /// Those that can be used; the log says what is wrong with the others.
    pub(crate) fn read(&self, kept: &[Document]) -> Vec<ServerConfig> {
        let mut servers = Vec::new();
        for kept in kept {
            match self.parse(&kept.key, &kept.json) {
                Ok(server) => {
                    self.warn(&kept.key, &kept.json);
                    servers.push(server);
                }
                Err(problems) => {
                    let why = toolgate_config::render(&problems);
                    tracing::error!(server = %kept.key, "a kept server cannot be used:\n{why}");
                }
            }
        }
        servers
    }

    /// An entry of an older version may hold a secret itself; the log is told once.
    fn warn(&self, name: &str, entry: &str) {
        let found = literals(entry);
        if !found.is_empty()
            && self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned())
        {
            tracing::warn!(
                server = name,
                "the database holds {} of this server in clear; remove it and add it again with \
                 `env:NAME` or `file:PATH`",
                found.join(", ")
            );
        }
    }

    fn parse(&self, name: &str, entry: &str) -> Result<ServerConfig, Vec<Problem>> {
        let name = serde_json::Value::from(name);
        let text = format!("{{\"version\":1,\"servers\":{{{name}:{entry}}}}}");
        let config = Config::parse(&text, &self.file, &Here)?.config;
        config.servers.into_iter().next().ok_or_else(Vec::new)
    }
}

impl Entries for KeptServers {
    fn check(&self, name: &str, entry: &str) -> Result<(), Vec<Flaw>> {
        let flaw = |problem: &Problem| Flaw {
            file: None,
            line: problem.line,
            column: problem.column,
            code: problem.code.to_owned(),
            message: problem.message.clone(),
            hint: problem.hint.clone().unwrap_or_default(),
        };
        let parsed = self.parse(name, entry);
        parsed.map_err(|problems| problems.iter().map(flaw).collect::<Vec<_>>())?;
        let secret = |place: String| Flaw {
            file: None,
            line: 0,
            column: 0,
            code: LITERAL_SECRET.to_owned(),
            message: format!(
                "`{place}` looks like a secret, and the database would hold it in clear"
            ),
            hint: "write `env:NAME` or `file:PATH` instead".to_owned(),
        };
        let flaws: Vec<Flaw> = literals(entry).into_iter().map(secret).collect();
        if flaws.is_empty() { Ok(()) } else { Err(flaws) }
    }
}
