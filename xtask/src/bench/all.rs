//! The cost of `/mcp`: many servers behind one endpoint, and faulty servers beside a healthy one.
//!
//! Each figure is a ratio between two toolgates in the same run, measured in turn: one with few
//! servers and one with many, one without faulty servers and one with them.

use std::time::Duration;

use anyhow::Result;

use super::arena::{Arena, Running};
use super::places::{Place, ratio_row, turns};
use super::table::{Row, say};
use super::{ALL, Extent, FAULTY};

/// The numbers of servers behind one endpoint.
const SERVERS: [usize; 3] = [1, 10, 100];
/// Tools of each server.
const TOOLS: usize = 100;
/// Built-in tools of toolgate.
const BUILT_IN: usize = 3;
/// The maximum cost ratio of a call with many servers.
const CALL_AIM: f64 = 1.1;
/// The maximum cost ratio of a listed tool in a long list.
const LIST_AIM: f64 = 1.5;
/// The maximum ratio of the slowest calls beside faulty servers.
const FAULTY_AIM: f64 = 1.5;
/// How long the first list refreshes take; measurements start after them.
const SETTLING: Duration = Duration::from_secs(5);

/// Both measurements, if selected.
pub(super) fn rows(arena: &Arena, extent: &Extent, wants: &dyn Fn(&str) -> bool) -> Vec<Row> {
    let mut rows = Vec::new();
    if wants(ALL) {
        say(&format!("measuring {ALL} ..."));
        match many_servers(arena, extent) {
            Ok(measured) => rows.extend(measured),
            Err(why) => rows.push(Row::invalid("many servers on one endpoint", &why)),
        }
    }
    if wants(FAULTY) {
        say(&format!("measuring {FAULTY} ..."));
        let measured = beside_faulty_servers(arena, extent);
        rows.push(
            measured.unwrap_or_else(|why| Row::invalid("a server beside faulty servers", &why)),
        );
    }
    rows
}

fn many_servers(arena: &Arena, extent: &Extent) -> Result<Vec<Row>> {
    let echo = arena.start_peer("echo", &["--tools", &TOOLS.to_string()])?;
    let url = echo.url("url")?;
    let (mut gates, mut places) = (Vec::new(), Vec::new());
    for count in SERVERS {
        let entries: Vec<String> =
            (0..count).map(|number| format!("  s{number}: {{ url: {url} }}\n")).collect();
        let gate = arena.start_toolgate_with(&entries.concat())?;
        places.push(Place::of(&gate, "mcp")?);
        gates.push(gate);
    }
    std::thread::sleep(SETTLING);
    let calls = ["--mode", "echo", "--prefix", "s0__"];
    let calls = turns(arena, &places, extent, "p50_us", |_| calls.map(str::to_owned).to_vec())?;
    let lists = turns(arena, &places, extent, "p50_us", |place| {
        let tools = SERVERS.get(place).copied().unwrap_or_default() * TOOLS + BUILT_IN;
        ["--mode", "list", "--tools", &tools.to_string()].map(str::to_owned).to_vec()
    })?;
    let mut rows = Vec::new();
    for place in [1, 2] {
        let count = SERVERS.get(place).copied().unwrap_or_default();
        let what = format!("call on `/mcp` with {count} servers, p50, to 1 server");
        rows.push(ratio_row(what, CALL_AIM, &calls, 0, place, 1.0));
    }
    let more = 10.0;
    for (few, many) in [(0, 1), (1, 2)] {
        let tools = |place: usize| SERVERS.get(place).copied().unwrap_or_default() * TOOLS;
        let (less, much) = (tools(few), tools(many));
        let what = format!("`tools/list` on `/mcp`, time a tool, {much} tools to {less}");
        rows.push(ratio_row(what, LIST_AIM, &lists, few, many, more));
    }
    Ok(rows)
}

fn beside_faulty_servers(arena: &Arena, extent: &Extent) -> Result<Row> {
    let echo = arena.start_peer("echo", &[])?;
    let endless = arena.start_peer("toolgate-faulty", &["endless-sse"])?;
    let healthy = format!("  s0: {{ url: {} }}\n", echo.url("url")?);
    let mut all = vec![healthy.clone()];
    let limits = "timeout: 2s, start_timeout: 2s, instances: shared";
    for server in FAULTY_SERVERS {
        let program = arena.binary("toolgate-faulty").display().to_string();
        let words = format!("command: {program}, args: [{server}], {limits}");
        all.push(format!("  {server}: {{ {words} }}\n"));
    }
    all.push(format!("  endless-sse: {{ url: {}, timeout: 2s }}\n", endless.url("url")?));
    let gates = [arena.start_toolgate_with(&healthy)?, arena.start_toolgate_with(&all.concat())?];
    let places = [Place::of(&gates[0], "mcp")?, Place::of(&gates[1], "mcp")?];
    std::thread::sleep(SETTLING);
    let load = ["--mode", "echo", "--prefix", "s0__", "--clients", "4"].map(str::to_owned);
    let rounds = turns(arena, &places, extent, "p99_us", |_| load.to_vec());
    // Stopped, not killed: a killed toolgate cannot end the servers that ignore it.
    gates.into_iter().try_for_each(Running::stop)?;
    let rounds = rounds?;
    let what = "call beside all faulty servers, p99, 4 clients, to the same without it".to_owned();
    Ok(ratio_row(what, FAULTY_AIM, &rounds, 0, 1, 1.0))
}

/// All faulty servers over stdio.
const FAULTY_SERVERS: [&str; 17] = [
    "shuffling",
    "slow",
    "dripping",
    "silent",
    "crash-at-start",
    "crash-mid-call",
    "crash-half-answer",
    "garbage",
    "stderr-flood",
    "long-line",
    "wrong-ids",
    "twice",
    "other-ids",
    "list-changed-storm",
    "many-tools",
    "changing-list",
    "stubborn",
];
