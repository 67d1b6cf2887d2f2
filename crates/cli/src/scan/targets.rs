//! What is scanned: one command, one URL, or the servers of a client's configuration, as servers of
//! a toolgate configuration.
//!
//! Values are handed over as variables of their own, so that nothing in them is expanded, and secrets
//! of a client's configuration never become part of a text that is shown.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use serde_json::{Map, Value, json};
use toolgate_config::{Config, Surroundings, render};
use toolgate_control::trusted;

use crate::args::ScanArgs;
use crate::config_source::Here;
use crate::exit::Usage;
use crate::print;

/// The servers to scan.
pub(super) struct Targets {
    /// As toolgate configures them, in this order.
    pub(super) config: Config,
    /// How people call them, in the same order.
    pub(super) names: Vec<String>,
    /// Whether they come from a client's configuration.
    pub(super) many: bool,
}

/// Values by the names of their variables, beside the environment.
#[derive(Default)]
struct Variables(HashMap<String, String>);

impl Surroundings for Variables {
    fn env(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned().or_else(|| Here.env(name))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        Here.read(path)
    }
}

impl Variables {
    /// A reference to a value.
    fn keep(&mut self, value: &str) -> String {
        let name = format!("TOOLGATE_SCAN_{}", self.0.len());
        self.0.insert(name.clone(), value.to_owned());
        format!("${{{name}}}")
    }
}

impl Targets {
    pub(super) fn find(args: &ScanArgs) -> anyhow::Result<Self> {
        let mut variables = Variables::default();
        let here = std::env::current_dir().context("the current folder cannot be read")?;
        if let Some(file) = &args.config {
            let found = of_client(file)?;
            let entries = found.iter().map(|(_, entry)| of_entry(entry, &mut variables)).collect();
            let names = found.iter().map(|(name, _)| name.clone()).collect();
            let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
            return Self::load(entries, names, true, &variables, &file);
        }
        let (entry, name) = match &args.url {
            Some(url) => (of_url(url, &args.headers)?, url.clone()),
            None => (of_command(&args.command, &mut variables)?, called(&args.command)),
        };
        Self::load(vec![entry], vec![name], false, &variables, &here.join("scan"))
    }

    fn load(
        entries: Vec<Value>,
        names: Vec<String>,
        many: bool,
        variables: &Variables,
        file: &Path,
    ) -> anyhow::Result<Self> {
        let servers: Map<String, Value> =
            entries.into_iter().enumerate().map(|(at, entry)| (format!("s{at}"), entry)).collect();
        let text = json!({ "version": 1, "servers": servers }).to_string();
        let loaded = Config::parse(&text, file, variables).map_err(|problems| {
            print::err(&render(&problems));
            anyhow!("nothing can be scanned with this")
        })?;
        let mut config = loaded.config;
        // `serde_json` keeps no order; the names do.
        config
            .servers
            .sort_by_key(|server| server.name.get(1..).and_then(|n| n.parse::<usize>().ok()));
        Ok(Self { config, names, many })
    }
}

/// The servers of a client's configuration.
fn of_client(file: &Path) -> anyhow::Result<Vec<(String, Value)>> {
    let unusable = || format!("`{}` cannot be used", file.display());
    let text = trusted::read_text(file).with_context(unusable)?;
    let root: Value = serde_json::from_str(&text).with_context(unusable)?;
    let found = ["/mcpServers", "/servers", "/mcp/servers"]
        .into_iter()
        .find_map(|pointer| root.pointer(pointer)?.as_object());
    let Some(servers) = found else {
        bail!("`{}` has no `mcpServers` and no `servers`", file.display());
    };
    if servers.is_empty() {
        bail!("`{}` lists no servers", file.display());
    }
    Ok(servers.iter().map(|(name, entry)| (name.clone(), entry.clone())).collect())
}

/// The keys of a client's entry that say how to connect.
fn of_entry(entry: &Value, variables: &mut Variables) -> Value {
    let mut kept = Map::new();
    for key in ["command", "args", "env", "cwd", "url"] {
        if let Some(value) = entry.get(key).filter(|value| !value.is_null()) {
            kept.insert(key.to_owned(), value.clone());
        }
    }
    if let Some(headers) = entry.get("headers").and_then(Value::as_object) {
        let reference = |value: &Value| match value.as_str() {
            Some(text) if is_reference(text) => value.clone(),
            Some(text) => variables.keep(text).into(),
            None => value.clone(),
        };
        let mut reference = reference;
        let headers: Map<String, Value> =
            headers.iter().map(|(name, value)| (name.clone(), reference(value))).collect();
        kept.insert("headers".to_owned(), headers.into());
    }
    Value::Object(kept)
}

fn is_reference(text: &str) -> bool {
    text.starts_with("env:") || text.starts_with("file:") || text.contains("${")
}

fn of_command(command: &[String], variables: &mut Variables) -> anyhow::Result<Value> {
    let (program, rest) = command.split_first().context("no program is named")?;
    let args: Vec<String> = rest.iter().map(|arg| variables.keep(arg)).collect();
    Ok(json!({ "command": variables.keep(program), "args": args }))
}

fn of_url(url: &str, headers: &[String]) -> anyhow::Result<Value> {
    let mut given = Map::new();
    for header in headers {
        let wrong = || Usage(format!("`--header {header}`: write \"NAME: env:VARIABLE\""));
        let (name, value) = header.split_once(':').ok_or_else(wrong)?;
        let value = value.trim();
        if !(value.starts_with("env:") || value.starts_with("file:")) {
            let why = "is not a reference; write env:VARIABLE or file:PATH, so that no secret is in \
                       the list of processes";
            return Err(Usage(format!("the value of `--header {}` {why}", name.trim())).into());
        }
        given.insert(name.trim().to_owned(), value.into());
    }
    // Unlike commands, addresses are not expanded.
    Ok(json!({ "url": url, "headers": given }))
}

/// How people call a command: by its package or script, else by its program.
fn called(command: &[String]) -> String {
    let runners = ["npx", "uvx", "node", "python", "python3", "uv", "docker", "bunx", "deno", "sh"];
    let last = |word: &String| word.rsplit('/').next().unwrap_or(word).to_owned();
    let program = command.first().map(last).unwrap_or_default();
    if !runners.contains(&program.as_str()) {
        return program;
    }
    let rest = command.iter().skip(1).filter(|word| !word.starts_with('-'));
    rest.clone().next().map_or(program, last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_names() {
        for (command, expected) in [
            (vec!["npx", "-y", "@modelcontextprotocol/server-memory"], "server-memory"),
            (vec!["/usr/bin/server", "--x"], "server"),
            (vec!["python3", "-m", "tool"], "tool"),
            (vec!["node"], "node"),
        ] {
            let command: Vec<String> = command.into_iter().map(str::to_owned).collect();
            assert_eq!(called(&command), expected);
        }
    }
}
