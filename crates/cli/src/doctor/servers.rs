//! Each server: its process starts, the handshake succeeds, its tools are listed, and none of their
//! definitions is quarantined.

use std::path::Path;

use http::Method;
use serde_json::Value;
use toolgate_config::Config;
use toolgate_gateway::{APPROVED_TOOLS, PINS};
use toolgate_store_sqlite::ReadOnlyStore;

use super::{Check, Installation};
use crate::admin_client::{AdminClient, part};
use crate::config_source::{Here, Source};
use crate::listing::text;
use crate::serve::{ListingGateway, NotListed};

pub(super) fn checks(here: &Installation<'_>) -> Vec<Check> {
    if here.has_gateway() {
        return running(here);
    }
    match with_secrets(&here.source) {
        None => Vec::new(),
        Some(config) if config.servers.is_empty() => {
            let fix = "toolgate server add NAME -- COMMAND, or toolgate import FILE --write";
            vec![Check::ok("servers", "there are none in toolgate.yaml").fix(fix)]
        }
        Some(config) => listed(&config, here.folder.as_deref()),
    }
}

/// Servers can only be started with their secrets.
fn with_secrets(source: &Source) -> Option<Config> {
    Config::load(source.file()?, &Here).ok().map(|loaded| loaded.config)
}

/// Starts the servers as `serve` does, lists their tools, and ends them.
fn listed(config: &Config, folder: Option<&Path>) -> Vec<Check> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let Ok(runtime) = runtime else {
        return vec![Check::fail("servers", "cannot start the runtime")];
    };
    runtime.block_on(async {
        let gateway = match ListingGateway::start(config) {
            Ok(gateway) => std::sync::Arc::new(gateway),
            Err(why) => return vec![Check::fail("servers", format!("{why:#}"))],
        };
        let is_judged = folder.is_some_and(|folder| restore(&gateway, folder));
        let mut running = tokio::task::JoinSet::new();
        for (at, server) in config.servers.iter().enumerate() {
            let (gateway, name) = (std::sync::Arc::clone(&gateway), server.name.clone());
            running.spawn(async move { (at, gateway.definitions(&name).await, name) });
        }
        let mut ended = running.join_all().await;
        gateway.stop().await;
        ended.sort_by_key(|(at, ..)| *at);
        let quarantined = ended.iter().flat_map(|(_, _, name)| {
            let tools = gateway.quarantined(name).into_iter();
            tools.map(move |(tool, why)| (format!("{name}/{tool}"), why))
        });
        let drift = is_judged.then(|| offline_drift(&quarantined.collect::<Vec<_>>()));
        let servers = ended.into_iter().map(|(_, tools, name)| outcome(&name, tools));
        servers.chain(drift).collect()
    })
}

/// Whether the data folder holds definitions to compare with.
fn restore(gateway: &ListingGateway, folder: &Path) -> bool {
    let Ok(Some(mut store)) = ReadOnlyStore::open(folder) else { return false };
    let (Ok(recorded), Ok(approved)) = (store.documents(PINS), store.documents(APPROVED_TOOLS))
    else {
        return false;
    };
    gateway.restore(&recorded, &approved);
    true
}

fn offline_drift(quarantined: &[(String, String)]) -> Check {
    match quarantined {
        [] => Check::ok("drift", "no definition differs from the one that may be used"),
        [(first, why), ..] => {
            let count = quarantined.len();
            Check::warn("drift", format!("{count} would be quarantined, first {first}: {why}"))
                .fix(format!("toolgate serve, then: toolgate tool show --diff {first}"))
        }
    }
}

fn outcome(name: &str, tools: Result<Vec<String>, NotListed>) -> Check {
    let id = format!("server:{name}");
    match tools {
        Ok(tools) => Check::ok(id, format!("starts and lists {} tools", tools.len())),
        Err(why) => Check::fail(id, why.to_string()).fix(format!(
            "correct the entry `{name}` in toolgate.yaml, then: toolgate server test {name}"
        )),
    }
}

/// As the running gateway sees them.
fn running(here: &Installation<'_>) -> Vec<Check> {
    let Ok(client) = AdminClient::new(&here.args.admin) else { return Vec::new() };
    let Ok(servers) = client.list("/api/v1/servers") else { return Vec::new() };
    let names = servers.iter().filter_map(|server| text(server, "name"));
    let mut checks: Vec<Check> = names
        .map(|name| {
            let path = format!("/api/v1/servers/{}/test", part(name));
            match client.send(&Method::POST, &path, None) {
                Ok(tested) => tested_check(name, &tested),
                Err(why) => Check::fail(format!("server:{name}"), format!("{why:#}")),
            }
        })
        .collect();
    checks.extend(drift(&client));
    checks
}

fn tested_check(name: &str, tested: &Value) -> Check {
    let tools = tested.get("tools").and_then(Value::as_array).map_or(0, Vec::len);
    if tested.get("ok").and_then(Value::as_bool) == Some(true) {
        return Check::ok(format!("server:{name}"), format!("starts and lists {tools} tools"));
    }
    let why = text(tested, "message").unwrap_or("no reason is known");
    Check::fail(format!("server:{name}"), why).fix(format!("toolgate server test {name}"))
}

/// Definitions that changed since they were approved.
fn drift(client: &AdminClient) -> Option<Check> {
    let tools = client.list("/api/v1/tools").ok()?;
    let changed: Vec<String> = tools
        .iter()
        .filter(|tool| text(tool, "state") == Some("quarantined"))
        .filter_map(|tool| Some(format!("{}/{}", text(tool, "server")?, text(tool, "name")?)))
        .collect();
    Some(match changed.first() {
        None => Check::ok("drift", "no definition is quarantined"),
        Some(first) => {
            Check::warn("drift", format!("{} quarantined, first {first}", changed.len())).fix(
                format!("toolgate tool show --diff {first}, then: toolgate tool approve {first}"),
            )
        }
    })
}
