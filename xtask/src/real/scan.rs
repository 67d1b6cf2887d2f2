//! `toolgate scan` of the real servers, all in one client configuration: over stdio and HTTP, of both
//! eras and of HTTP+SSE. Their tools are found and judged, and those whose version the catalogue has
//! are recognised, definition by definition.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value, json};

use super::servers::Server;
use super::{listening, runs};
use crate::gate::binary;
use crate::peers::copy_scripts;
use crate::report::say;

/// A server, a tool that it must have, and the class of that tool.
const SCANNED: &[(Server, &str, &str)] = &[
    (Server::Everything, "get-env", "read"),
    (Server::EverythingHttp, "echo", "other"),
    (Server::Filesystem, "read_text_file", "read"),
    (Server::Memory, "delete_entities", "destructive"),
    (Server::Git, "git_commit", "write"),
    (Server::Time, "get_current_time", "read"),
    (Server::Zulip, "close_agent_session", "write"),
    (Server::Older, "", ""),
];

/// Servers whose installed version is the one of the catalogue.
const RECOGNISED: &[Server] =
    &[Server::Everything, Server::Filesystem, Server::Memory, Server::Git, Server::Time];

pub(crate) fn scan() -> Result<()> {
    copy_scripts()?;
    let listening = listening()?;
    let folder = runs().join("scan");
    let mut entries = Map::new();
    for (server, ..) in SCANNED {
        let work = folder.join(server.name());
        server.prepare(&work)?;
        entries.insert(server.name().to_owned(), server.entry(&work, &listening));
    }
    let config = folder.join("client.json");
    fs::write(&config, format!("{:#}\n", json!({"mcpServers": entries})))?;
    let policy = folder.join("policy.yaml");
    let mut command = Command::new(binary());
    command.args(["scan", "-o", "json", "--force", "--config"]).arg(&config);
    let scanned = command.arg("--write").arg(&policy).stdin(Stdio::null()).output()?;
    ensure!(scanned.status.success(), "{}", String::from_utf8_lossy(&scanned.stderr));
    let found: Value = serde_json::from_slice(&scanned.stdout).context("the output is not JSON")?;
    let mut tools = 0;
    for (server, tool, class) in SCANNED {
        tools += check(&found, *server, tool, class)?;
    }
    ensure!(found.pointer("/trifecta/present") == Some(&json!(true)), "no trifecta is found");
    let checked = Command::new(binary()).args(["policy", "check"]).arg(&policy).output()?;
    let why = String::from_utf8_lossy(&checked.stderr);
    ensure!(checked.status.success(), "the written policy is not valid: {why}");
    say(&format!("{tools} tools of {} servers", SCANNED.len()));
    Ok(())
}

fn check(found: &Value, server: Server, tool: &str, class: &str) -> Result<usize> {
    let name = server.name();
    let all = found.get("servers").and_then(Value::as_array).context("no servers")?;
    let is_it = |item: &&Value| item.get("server").and_then(Value::as_str) == Some(name);
    let item = all.iter().find(is_it).with_context(|| format!("{name} is missing"))?;
    let tools = item.get("tools").and_then(Value::as_array);
    let tools = tools.with_context(|| format!("{name}: {item}"))?;
    ensure!(!tools.is_empty(), "{name} lists no tools");
    if !tool.is_empty() {
        let named = |item: &&Value| item.get("name").and_then(Value::as_str) == Some(tool);
        let judged = tools.iter().find(named).and_then(|item| item.get("class"));
        ensure!(judged == Some(&json!(class)), "{name}/{tool}: {judged:?}, expected {class}");
    }
    if RECOGNISED.contains(&server) {
        let counts = |key: &str| item.get("catalogue").and_then(|object| object.get(key));
        let (equal, of) = (counts("equal"), counts("of"));
        let is_recognised = equal.is_some() && equal == of && of == Some(&json!(tools.len()));
        ensure!(is_recognised, "{name}: {:?}", item.get("catalogue"));
    }
    Ok(tools.len())
}
