//! The files of MCP clients: readable, and their entry of toolgate leads to this gateway.

use std::net::SocketAddr;

use serde_json::Value;
use toolgate_clients::{FileValue, McpClient, entry_of, text_of};
use toolgate_control::trusted;

use super::{Check, Installation};
use crate::client::places;
use crate::data::announced;

pub(super) fn checks(here: &Installation<'_>) -> Vec<Check> {
    let places = places();
    let address = address(here);
    let of = |client: &McpClient| {
        let file = client.file(&places);
        let (id, shown) = (format!("client:{}", client.id()), file.display().to_string());
        let bytes = match trusted::read(&file) {
            Ok(bytes) => bytes,
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => return None,
            Err(why) => {
                let fix = format!("chmod 600 {shown}");
                return Some(Check::warn(id, format!("`{shown}`: {why}")).fix(fix));
            }
        };
        let entry = match text_of(bytes) {
            Ok(text) => entry_of(*client, &text, "toolgate").map_err(|why| why.to_string()),
            Err(why) => Err(why.to_string()),
        };
        Some(match entry {
            Err(why) => Check::fail(id, format!("`{shown}`: {why}"))
                .fix(format!("correct {shown}, or restore its backup")),
            Ok(None) => Check::ok(id, "toolgate is not in its file")
                .fix(format!("toolgate client connect {}", client.id())),
            Ok(Some(entry)) => connected(*client, id, &entry, address),
        })
    };
    McpClient::ALL.iter().filter_map(of).collect()
}

/// Where agents connect: the running gateway, else the configuration.
fn address(here: &Installation<'_>) -> Option<SocketAddr> {
    let running = here.folder.as_deref().and_then(|folder| announced(folder, "--url").ok());
    let running = running.and_then(|line| {
        let line: Value = serde_json::from_str(&line).ok()?;
        let url = line.get("mcp")?.as_str()?;
        url.split_once("://")?.1.parse().ok()
    });
    running.or_else(|| here.config.as_ref()?.listen.mcp)
}

fn connected(
    client: McpClient,
    id: String,
    entry: &FileValue,
    address: Option<SocketAddr>,
) -> Check {
    let shown = entry.to_string();
    let Some(address) = address else { return Check::ok(id, "connected") };
    let port = format!(":{}/", address.port());
    if address.port() == 0 || shown.contains(&port) {
        return Check::ok(id, "connected to this gateway");
    }
    Check::warn(id, format!("its entry `toolgate` does not lead to {address}"))
        .fix(format!("toolgate client connect {}", client.id()))
}
