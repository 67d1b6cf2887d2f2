//! `cargo xtask bench`: the cost of toolgate, as ratios to a bare proxy in the same run.
//!
//! The peers (echo server, bare proxy, load generator) are binaries of `testkit`; this module
//! starts them, measures in turn and compares the figures. [`SCENARIOS`] lists measurements and
//! aims; [`arena`] starts processes, [`measure`] takes the figures, [`table`] shows them.
//!
//! Invariant: never a test. A missed aim is shown, and the exit code stays 0; only wrong answers
//! and failing processes are failures.
//! Invariant: compared setups run in turn in the same minute; figures of different runs are never
//! compared.

mod all;
mod approvals;
mod arena;
mod classify;
mod console;
mod dialled;
mod instructions;
mod machine;
mod measure;
mod places;
mod policy;
mod table;
mod written;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use self::arena::Arena;
use self::table::{Row, Table};

const USAGE: &str = "\
usage: cargo xtask bench [--quick] [--only NAME] [--toolgate PATH]
       cargo xtask bench policy [--quick | --gate | --bless]
       cargo xtask bench console [--quick] [--toolgate PATH]

  --quick           fewer and shorter rounds; docs/benchmarks.md is left as it is
  --only NAME       one measurement (may be repeated); likewise
  --toolgate PATH   measure this binary instead of building one; likewise";

/// How the three setups are compared.
#[derive(Debug, Clone, Copy)]
enum Compare {
    /// What toolgate adds to the direct p50, over what the bare proxy adds.
    AddedLatency,
    /// Toolgate's requests per second over the bare proxy's.
    Throughput,
    /// Toolgate's p50 over the direct one.
    ToDirect,
    /// Toolgate's p50 over the bare proxy's.
    ToBare,
}

/// One comparison under load.
struct Scenario {
    name: &'static str,
    what: &'static str,
    compare: Compare,
    /// The target ratio: at least for throughput, at most for times.
    aim: Option<f64>,
    /// Arguments of the load generator.
    load: &'static [&'static str],
    server: Server,
    gate: Safety,
}

/// The durability of the toolgate in a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Safety {
    /// Without grants, policy or audit: the cost of forwarding alone.
    Bare,
    /// With grants, a policy of a thousand tools and limits; nothing is recorded.
    Counted,
    /// The same, recorded: `durability: process`, the default.
    Process,
    /// The same, synced to the disk: `durability: power`.
    Power,
}

/// The echo server of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Server {
    Small,
    /// Lists [`MANY_TOOLS`] tools.
    Many,
}

/// The cargo profile of a release; cargo names the folder under `target/` after it.
const PROFILE: &str = "dist";
const MANY_TOOLS: &str = "10000";
/// The token of agents of a toolgate with grants.
const TOKEN: &str = "the-token-of-the-load-generator";
const DISK: &str = "disk";
const ROWS: &str = "rows";
const MEMORY: &str = "memory";
const START: &str = "start";
const ALL: &str = "all";
const FAULTY: &str = "faulty";
const SESSION_CALL: &str = "session-call";
const FLEET: &str = "sessions";
const STORM: &str = "storm";
const APPROVALS: &str = "approvals";
/// Measurements besides the scenarios.
const OTHERS: [&str; 10] =
    [MEMORY, START, DISK, ROWS, ALL, FAULTY, SESSION_CALL, FLEET, STORM, APPROVALS];
const MEMORY_AIM_MIB: f64 = 15.0;
const START_AIM_MS: f64 = 50.0;
const DISK_AIM_BYTES: f64 = 1_000.0;
const READY_AIM_S: f64 = 2.0;
const VERIFY_AIM_S: f64 = 5.0;

const SCENARIOS: [Scenario; 13] = [
    Scenario {
        name: "latency",
        what: "latency added at p50, 1 client",
        compare: Compare::AddedLatency,
        aim: Some(1.3),
        load: &["--mode", "echo"],
        server: Server::Small,
        gate: Safety::Bare,
    },
    Scenario {
        name: "throughput-32",
        what: "calls per second, 32 clients",
        compare: Compare::Throughput,
        aim: Some(0.8),
        load: &["--mode", "echo", "--clients", "32"],
        server: Server::Small,
        gate: Safety::Bare,
    },
    Scenario {
        name: "throughput-128",
        what: "calls per second, 128 clients",
        compare: Compare::Throughput,
        aim: Some(0.8),
        load: &["--mode", "echo", "--clients", "128"],
        server: Server::Small,
        gate: Safety::Bare,
    },
    Scenario {
        name: "safe-latency",
        what: "the same with grants, policy, limits, audit",
        compare: Compare::AddedLatency,
        aim: Some(2.5),
        load: &["--mode", "echo", "--token", TOKEN],
        server: Server::Small,
        gate: Safety::Process,
    },
    Scenario {
        name: "safe-32",
        what: "calls per second, 32 clients, with all that",
        compare: Compare::Throughput,
        aim: Some(0.4),
        load: &["--mode", "echo", "--token", TOKEN, "--clients", "32"],
        server: Server::Small,
        gate: Safety::Process,
    },
    Scenario {
        name: "safe-128",
        what: "calls per second, 128 clients, with all that",
        compare: Compare::Throughput,
        aim: Some(0.4),
        load: &["--mode", "echo", "--token", TOKEN, "--clients", "128"],
        server: Server::Small,
        gate: Safety::Process,
    },
    Scenario {
        name: "power-latency",
        what: "latency added at p50, 1 client, `power`",
        compare: Compare::AddedLatency,
        aim: None,
        load: &["--mode", "echo", "--token", TOKEN],
        server: Server::Small,
        gate: Safety::Power,
    },
    Scenario {
        name: "power-32",
        what: "calls per second, 32 clients, `power`",
        compare: Compare::Throughput,
        aim: None,
        load: &["--mode", "echo", "--token", TOKEN, "--clients", "32"],
        server: Server::Small,
        gate: Safety::Power,
    },
    Scenario {
        name: "counted-latency",
        what: "latency added at p50, 1 client, audit off",
        compare: Compare::AddedLatency,
        aim: None,
        load: &["--mode", "echo", "--token", TOKEN],
        server: Server::Small,
        gate: Safety::Counted,
    },
    Scenario {
        name: "counted-32",
        what: "calls per second, 32 clients, audit off",
        compare: Compare::Throughput,
        aim: None,
        load: &["--mode", "echo", "--token", TOKEN, "--clients", "32"],
        server: Server::Small,
        gate: Safety::Counted,
    },
    Scenario {
        name: "list",
        what: "`tools/list` of 10,000 tools (7 MB)",
        compare: Compare::ToDirect,
        aim: Some(1.5),
        load: &["--mode", "list", "--tools", MANY_TOOLS],
        server: Server::Many,
        gate: Safety::Bare,
    },
    Scenario {
        name: "big",
        what: "8 MB of text as a result",
        compare: Compare::ToBare,
        aim: Some(2.0),
        load: &["--mode", "big", "--size", "8000000"],
        server: Server::Small,
        gate: Safety::Bare,
    },
    Scenario {
        name: "structured",
        what: "8 MB of structured content",
        compare: Compare::ToBare,
        aim: Some(2.0),
        load: &["--mode", "structured", "--size", "8000000"],
        server: Server::Small,
        gate: Safety::Bare,
    },
];

/// How much is measured.
struct Extent {
    rounds: usize,
    round: Duration,
    starts: usize,
    idle: Duration,
    /// Calls that are recorded before the disk is measured, and rows before a restart.
    calls: u64,
    rows: u64,
    /// Restarts after which all sessions reconnect.
    storms: usize,
}

struct Options {
    quick: bool,
    only: Vec<String>,
    toolgate: Option<PathBuf>,
}

/// Runs the verb with its arguments.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    match words {
        ["policy", rest @ ..] => return policy::run(rest),
        ["classify", rest @ ..] => return classify::run(rest),
        ["console", rest @ ..] => return console::run(rest),
        _ => {}
    }
    let options = Options::parse(words)?;
    build(options.toolgate.is_some())?;
    let machine = machine::describe();
    let mut table = Table::default();
    for row in measure_all(&options)? {
        table.push(row);
    }
    table::say(&format!("\n{machine}\n\n{}", table.text()));
    if options.is_complete() {
        table::write_into(&crate::root().join("docs/benchmarks.md"), &machine, &table)?;
        table::say("\nwritten to docs/benchmarks.md");
    }
    ensure!(table.is_valid(), "some measurements failed; see the table");
    Ok(())
}

/// Builds the peers, and toolgate unless there is one.
fn build(has_toolgate: bool) -> Result<()> {
    // Two builds, so that the peers' features are not built into toolgate.
    let mut packages = vec!["toolgate-testkit"];
    if !has_toolgate {
        packages.push("toolgate");
    }
    for package in packages {
        let arguments = ["build", "--profile", PROFILE, "--quiet", "--package", package];
        let status = crate::cargo::cargo().args(arguments).status()?;
        ensure!(status.success(), "building {package} failed");
    }
    Ok(())
}

fn measure_all(options: &Options) -> Result<Vec<Row>> {
    let extent = options.extent();
    let arena = Arena::new(options.toolgate.clone())?;
    let mut rows = Vec::new();
    if options.wants(START) {
        rows.push(measure::start(&arena, extent.starts)?);
    }
    if options.wants(MEMORY) {
        rows.extend(measure::idle_memory(&arena, extent.idle)?);
    }
    if options.wants(DISK) {
        rows.push(written::disk(&arena, extent.calls)?);
    }
    if options.wants(ROWS) {
        rows.extend(written::many_rows(&arena, extent.rows)?);
    }
    let scenarios: Vec<_> = SCENARIOS.iter().filter(|s| options.wants(s.name)).collect();
    if !scenarios.is_empty() {
        let setup = arena.open().context("setting up the three arrangements")?;
        for scenario in scenarios {
            table::say(&format!("measuring {} ...", scenario.name));
            rows.push(measure::compare(&arena, &setup, scenario, &extent));
        }
        rows.push(measure::memory_after_load(&setup)?);
    }
    rows.extend(all::rows(&arena, &extent, &|name| options.wants(name)));
    rows.extend(dialled::rows(&arena, &extent, &|name| options.wants(name)));
    rows.extend(approvals::rows(&arena, &extent, &|name| options.wants(name)));
    Ok(rows)
}

// === impl Options ===

impl Options {
    fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self { quick: false, only: Vec::new(), toolgate: None };
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            match *word {
                "--quick" => options.quick = true,
                "--only" => {
                    let name = rest.next().context("`--only` needs a name")?;
                    let known = || SCENARIOS.iter().map(|s| s.name).chain(OTHERS);
                    if !known().any(|known| known == *name) {
                        let all: Vec<_> = known().collect();
                        bail!("no measurement is called `{name}`; there are {}", all.join(", "));
                    }
                    options.only.push((*name).to_owned());
                }
                "--toolgate" => {
                    let path = rest.next().context("`--toolgate` needs a path")?;
                    options.toolgate = Some(path.into());
                }
                unknown => bail!("unknown option `{unknown}`\n\n{USAGE}"),
            }
        }
        Ok(options)
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    /// Whether the figures are those that the documentation shows.
    fn is_complete(&self) -> bool {
        !self.quick && self.only.is_empty() && self.toolgate.is_none()
    }

    fn extent(&self) -> Extent {
        let (rounds, millis, starts, idle) =
            if self.quick { (3, 500, 5, 2) } else { (9, 1_500, 21, 10) };
        let (calls, rows) = if self.quick { (10_000, 20_000) } else { (50_000, 1_000_000) };
        let storms = if self.quick { 1 } else { 5 };
        Extent {
            storms,
            calls,
            rows,
            rounds,
            round: Duration::from_millis(millis),
            starts,
            idle: Duration::from_secs(idle),
        }
    }
}
