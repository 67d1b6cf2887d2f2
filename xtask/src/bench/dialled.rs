//! The cost of sessions: a call through one of them, a thousand connected ones, and a thousand that
//! reconnect at once.
//!
//! They are a fleet of `testkit`, in its own process.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use super::arena::{Arena, Running};
use super::measure::{Memory, median, spread};
use super::places::{Place, ratio_row, turns};
use super::table::{Row, Verdict, say};
use super::{Extent, FLEET, SESSION_CALL, STORM};

/// Members of the fleet, and tools of each.
const SESSIONS: usize = 1_000;
const TOOLS: usize = 20;
/// Built-in tools of toolgate.
const BUILT_IN: usize = 3;
/// The maximum ratio of a call through a session to one to an HTTP server.
const CALL_AIM: f64 = 1.5;
const MEMORY_AIM_KIB: f64 = 25.0;
const LIST_AIM_MS: f64 = 2.0;
const STORM_AIM_S: f64 = 2.0;

/// The selected measurements.
pub(super) fn rows(arena: &Arena, extent: &Extent, wants: &dyn Fn(&str) -> bool) -> Vec<Row> {
    type Measure = fn(&Arena, &Extent) -> Result<Vec<Row>>;
    let all: [(&str, &str, Measure); 3] = [
        (SESSION_CALL, "a call through a session", call),
        (FLEET, "a thousand sessions", fleet),
        (STORM, "a storm of registers", storm),
    ];
    let mut rows = Vec::new();
    for (name, what, measure) in all.into_iter().filter(|(name, ..)| wants(name)) {
        say(&format!("measuring {name} ..."));
        match measure(arena, extent) {
            Ok(measured) => rows.extend(measured),
            Err(why) => rows.push(Row::invalid(what, &why)),
        }
    }
    rows
}

/// The same echo on two paths through one toolgate: to an HTTP server, and to a session.
fn call(arena: &Arena, extent: &Extent) -> Result<Vec<Row>> {
    let echo = arena.start_echo()?;
    let toolgate = arena.start_toolgate(&[("echo", &echo.url("url")?)])?;
    let _session = gather(arena, &toolgate, 1)?;
    let places = [Place::of(&toolgate, "mcp/echo")?, Place::of(&toolgate, "mcp/sessions")?];
    let mut rows = Vec::new();
    for (clients, who) in [("1", "1 client"), ("32", "32 clients")] {
        let load = ["--mode", "echo", "--clients", clients].map(str::to_owned);
        let rounds = turns(arena, &places, extent, "p50_us", |_| load.to_vec())?;
        let what = format!("call through a session, p50, {who}, to an HTTP server");
        let row = ratio_row(what, CALL_AIM, &rounds, 0, 1, 1.0);
        // A session runs one call at a time, so many clients wait for each other: no aim.
        let alone = clients == "1";
        rows.push(if alone { row } else { row.without_aim() });
    }
    Ok(rows)
}

/// A thousand connected, silent sessions: their memory, and the list of their tools.
fn fleet(arena: &Arena, extent: &Extent) -> Result<Vec<Row>> {
    let toolgate = arena.start_toolgate(&[])?;
    let place = Place::of(&toolgate, "mcp/sessions")?;
    // The cost of the first agent and the first session is excluded.
    let first = gather(arena, &toolgate, 1)?;
    list(arena, extent, &place, 1)?;
    drop(first);
    let idle = Memory::of(&toolgate)?;
    let _fleet = gather(arena, &toolgate, SESSIONS)?;
    std::thread::sleep(extent.idle);
    let full = Memory::of(&toolgate)?;
    let kib = |full: f64, idle: f64| (full - idle) * 1024.0 / as_number(SESSIONS);
    let each = kib(full.resident, idle.resident);
    let memory = Row {
        what: format!("memory of each of {SESSIONS} live sessions, above idle (resident; private)"),
        aim: format!("≤ {MEMORY_AIM_KIB} KiB"),
        result: format!("{each:.1} KiB"),
        spread: format!("{:.1}", kib(full.private, idle.private)),
        ways: [String::new(), String::new(), format!("{:.1} MiB", full.resident)],
        processor: String::new(),
        verdict: Verdict::of(each <= MEMORY_AIM_KIB),
    };
    let millis = list(arena, extent, &place, extent.rounds)?;
    let middle = median(&millis);
    let listing = Row {
        what: format!("`tools/list` with {SESSIONS} sessions × {TOOLS} equal tools, p50"),
        aim: format!("≤ {LIST_AIM_MS} ms"),
        result: format!("{middle:.2} ms"),
        spread: spread(&millis, 2),
        ways: [String::new(), String::new(), format!("{middle:.2} ms")],
        processor: String::new(),
        verdict: Verdict::of(middle <= LIST_AIM_MS),
    };
    Ok(vec![memory, listing])
}

/// Toolgate restarts, and all sessions reconnect at once.
fn storm(arena: &Arena, extent: &Extent) -> Result<Vec<Row>> {
    let home = arena.new_home()?;
    let mut seconds = Vec::with_capacity(extent.storms);
    for _ in 0..=extent.storms {
        let toolgate = arena.start_audited(&home)?;
        let from = Instant::now();
        let fleet = gather(arena, &toolgate, SESSIONS)?;
        let listed = listed(arena, &home)?;
        seconds.push(from.elapsed().as_secs_f64());
        ensure!(listed == SESSIONS, "{listed} sessions are listed");
        toolgate.stop()?;
        drop(fleet);
    }
    // The first start is not a restart.
    seconds.remove(0);
    let middle = median(&seconds);
    Ok(vec![Row {
        what: format!("{SESSIONS} clients register after a restart, until all are listed"),
        aim: format!("≤ {STORM_AIM_S} s"),
        result: format!("{middle:.2} s"),
        spread: spread(&seconds, 2),
        ways: [String::new(), String::new(), format!("{middle:.2} s")],
        processor: String::new(),
        verdict: Verdict::of(middle <= STORM_AIM_S),
    }])
}

fn gather(arena: &Arena, toolgate: &Running, sessions: usize) -> Result<Running> {
    let url = toolgate.url("sessions")?;
    let [sessions, tools] = [sessions, TOOLS].map(|number| number.to_string());
    arena.start_peer("fleet", &[&url, "--sessions", &sessions, "--tools", &tools])
}

/// Lists the tools in several rounds; returns the p50 of each, in milliseconds.
fn list(arena: &Arena, extent: &Extent, place: &Place, rounds: usize) -> Result<Vec<f64>> {
    let tools = (TOOLS + BUILT_IN).to_string();
    let load = ["--mode", "list", "--tools", &tools].map(str::to_owned);
    let places = std::slice::from_ref(place);
    let mut millis = Vec::new();
    for _ in 0..rounds {
        let round =
            turns(arena, places, &Extent { rounds: 1, ..*extent }, "p50_us", |_| load.to_vec())?;
        millis.extend(round.iter().flatten().map(|taken| taken.micros / 1e3));
    }
    Ok(millis)
}

/// The number of sessions that people see.
fn listed(arena: &Arena, home: &Path) -> Result<usize> {
    let mut command = arena.toolgate();
    command.args(["session", "list", "-o", "jsonl", "--data"]).arg(home.join("data"));
    let output = command.output().context("listing the sessions")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`session list` failed: {}", said.trim());
    Ok(String::from_utf8(output.stdout)?.lines().count())
}

#[expect(clippy::cast_precision_loss, reason = "a thousand")]
fn as_number(count: usize) -> f64 {
    count as f64
}
