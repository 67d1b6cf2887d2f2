//! What is scanned: one command, one URL, or the servers of a client's configuration, as servers of
//! a toolgate configuration.

use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use serde_json::{Map, Value, json};
use toolgate_config::Config;
use toolgate_control::trusted;

use crate::ad_hoc::{Variables, called, is_reference, of_command, of_url};
use crate::args::ScanArgs;
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
            Some(url) => (of_url(url, &args.headers, false, &mut variables)?, url.clone()),
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
            print::problems(&problems);
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
