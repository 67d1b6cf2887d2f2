//! Servers that were added at run time: read as if they stood in a `toolgate.yaml` of the data
//! folder.

use std::path::{Path, PathBuf};

use toolgate_admin::{Entries, Flaw};
use toolgate_config::{Config, Problem, Process, ServerConfig};
use toolgate_store::Kept;

/// Reads entries; their relative paths begin in the data folder.
pub(crate) struct KeptServers {
    /// Only its folder counts.
    file: PathBuf,
}

impl KeptServers {
    pub(crate) fn new(data: &Path) -> Self {
        let data = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
        Self { file: data.join("server") }
    }

    /// Those that can be used; the log says what is wrong with the others.
    pub(crate) fn read(&self, kept: &[Kept]) -> Vec<ServerConfig> {
        let mut servers = Vec::new();
        for kept in kept {
            match self.parse(&kept.key, &kept.json) {
                Ok(server) => servers.push(server),
                Err(problems) => {
                    let why = toolgate_config::render(&problems);
                    tracing::error!(server = %kept.key, "a kept server cannot be used:\n{why}");
                }
            }
        }
        servers
    }

    fn parse(&self, name: &str, entry: &str) -> Result<ServerConfig, Vec<Problem>> {
        let name = serde_json::Value::from(name);
        let text = format!("{{\"version\":1,\"servers\":{{{name}:{entry}}}}}");
        let config = Config::parse(&text, &self.file, &Process)?.config;
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
        parsed.map(drop).map_err(|problems| problems.iter().map(flaw).collect())
    }
}
