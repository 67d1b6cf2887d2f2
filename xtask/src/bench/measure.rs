//! Takes the figures: comparisons under load in alternating rounds, memory, time to start.

use std::fs;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::arena::{Arena, Running, Setup};
use super::table::{Row, Verdict};
use super::{Compare, Extent, MEMORY_AIM_MIB, START_AIM_MS, Scenario};

/// Compares the three setups; if one cannot be measured, the row contains the reason.
pub(super) fn compare(arena: &Arena, setup: &Setup, scenario: &Scenario, extent: &Extent) -> Row {
    match rounds(arena, setup, scenario, extent) {
        Ok(rounds) => row(scenario, &rounds),
        Err(why) => Row::invalid(scenario.what, &why),
    }
}

/// Measures the three paths in turn: a temporary disturbance affects all three.
fn rounds(
    arena: &Arena,
    setup: &Setup,
    scenario: &Scenario,
    extent: &Extent,
) -> Result<Vec<Round>> {
    let [direct, bare, toolgate] = setup.ways(scenario);
    let mut rounds = Vec::with_capacity(extent.rounds);
    for number in 0..extent.rounds {
        let mut round = Round::default();
        let mut turns = [
            ("direct", direct, &mut round.direct),
            ("bare", bare, &mut round.bare),
            ("toolgate", toolgate, &mut round.toolgate),
        ];
        // Each way follows each other way about as often.
        turns.rotate_left(number % 3);
        if number % 2 == 1 {
            turns.reverse();
        }
        for (name, way, taken) in turns {
            let before = processor_time(way.pid)?;
            let report = arena.load(&way.url, scenario.load, extent.round);
            let spent = processor_time(way.pid)?.saturating_sub(before);
            *taken = report
                .and_then(|report| Taken::of(scenario.compare, &report, spent))
                .with_context(|| name)?;
        }
        rounds.push(round);
    }
    Ok(rounds)
}

/// Starts toolgate repeatedly on an empty data folder.
pub(super) fn start(arena: &Arena, starts: usize) -> Result<Row> {
    let mut millis = Vec::with_capacity(starts);
    for _ in 0..starts {
        let running = arena.start_toolgate(&[("echo", NOBODY)])?;
        millis.push(running.took.as_secs_f64() * 1e3);
    }
    let middle = median(&millis);
    Ok(Row {
        what: "start to ready, empty data folder".into(),
        aim: format!("≤ {START_AIM_MS} ms"),
        result: format!("{middle:.1} ms"),
        spread: spread(&millis, 1),
        ways: [String::new(), String::new(), format!("{middle:.1} ms")],
        processor: String::new(),
        verdict: Verdict::of(middle <= START_AIM_MS),
    })
}

/// The memory of an unused toolgate, at once and after a while.
pub(super) fn idle_memory(arena: &Arena, idle: Duration) -> Result<Vec<Row>> {
    let running = arena.start_toolgate(&[("echo", NOBODY)])?;
    let fresh = Memory::of(&running)?;
    thread::sleep(idle);
    let later = Memory::of(&running)?;
    let seconds = idle.as_secs();
    Ok([("after start".to_owned(), fresh), (format!("after {seconds} s idle"), later)]
        .into_iter()
        .map(|(when, memory)| Row {
            aim: format!("≤ {MEMORY_AIM_MIB} MiB"),
            verdict: Verdict::of(memory.resident <= MEMORY_AIM_MIB),
            ..memory.row(&when)
        })
        .collect())
}

/// The memory of the toolgate that has served the load, as a figure without an aim.
pub(super) fn memory_after_load(setup: &Setup) -> Result<Row> {
    Ok(Memory::of(&setup.toolgate)?.row("after all of the above"))
}

/// A configured server that is never used.
const NOBODY: &str = "http://127.0.0.1:9/mcp";

/// The measurements of one round.
#[derive(Debug, Clone, Copy, Default)]
struct Round {
    direct: Taken,
    bare: Taken,
    toolgate: Taken,
}

#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    /// The compared figure: a time in microseconds, or calls per second.
    figure: f64,
    /// Processor time of the process in between per call, in microseconds. It hardly depends on
    /// other load.
    processor: f64,
}

impl Taken {
    fn of(compare: Compare, report: &Value, spent: Duration) -> Result<Self> {
        let answers = report.get("answers").and_then(Value::as_f64).unwrap_or_default();
        let figure = compare.figure(report)?;
        Ok(Self { figure, processor: spent.as_secs_f64() * 1e6 / answers })
    }
}

// === impl Compare ===

impl Compare {
    fn figure(self, report: &Value) -> Result<f64> {
        if let Some(error) = report.get("first_error").and_then(Value::as_str) {
            bail!("{error}");
        }
        let key = match self {
            Self::Throughput => "per_second",
            Self::AddedLatency | Self::ToDirect | Self::ToBare => "p50_us",
        };
        let figure = report.get(key).and_then(Value::as_f64).context("the report has no figure")?;
        ensure!(figure > 0.0, "nothing was measured: {report}");
        Ok(figure)
    }

    fn ratio(self, round: &Round) -> f64 {
        let [direct, bare, toolgate] =
            [round.direct, round.bare, round.toolgate].map(|taken| taken.figure);
        match self {
            Self::AddedLatency => (toolgate - direct) / (bare - direct),
            Self::Throughput | Self::ToBare => toolgate / bare,
            Self::ToDirect => toolgate / direct,
        }
    }

    fn is_met(self, ratio: f64, aim: f64) -> bool {
        match self {
            Self::Throughput => ratio >= aim,
            Self::AddedLatency | Self::ToDirect | Self::ToBare => ratio <= aim,
        }
    }

    fn aim(self, aim: f64) -> String {
        match self {
            Self::Throughput => format!("≥ {aim}× bare"),
            Self::AddedLatency | Self::ToBare => format!("≤ {aim}× bare"),
            Self::ToDirect => format!("≤ {aim}× direct"),
        }
    }

    fn show(self, figure: f64) -> String {
        match self {
            Self::Throughput => format!("{figure:.0}/s"),
            Self::AddedLatency => format!("{figure:.1} µs"),
            Self::ToDirect | Self::ToBare => format!("{:.2} ms", figure / 1e3),
        }
    }
}

fn row(scenario: &Scenario, rounds: &[Round]) -> Row {
    let compare = scenario.compare;
    let ratios: Vec<_> = rounds.iter().map(|round| compare.ratio(round)).collect();
    let ratio = median(&ratios);
    let middle = |figure: fn(&Round) -> f64| median(&rounds.iter().map(figure).collect::<Vec<_>>());
    let bare = middle(|round| round.bare.processor);
    let toolgate = middle(|round| round.toolgate.processor);
    let times = toolgate / bare;
    Row {
        what: scenario.what.into(),
        aim: scenario.aim.map(|aim| compare.aim(aim)).unwrap_or_default(),
        result: format!("{ratio:.2}×"),
        spread: spread(&ratios, 2),
        ways: [
            compare.show(middle(|round| round.direct.figure)),
            compare.show(middle(|round| round.bare.figure)),
            compare.show(middle(|round| round.toolgate.figure)),
        ],
        processor: format!("{bare:.0} → {toolgate:.0} µs ({times:.2}×)"),
        verdict: scenario.aim.map_or(Verdict::NoAim, |aim| Verdict::of(compare.is_met(ratio, aim))),
    }
}

/// How long the threads of a process have run.
pub(super) fn processor_time(pid: u32) -> Result<Duration> {
    let folder = format!("/proc/{pid}/task");
    let threads = fs::read_dir(&folder).with_context(|| format!("reading {folder}"))?;
    let mut nanos = 0;
    for thread in threads {
        // The thread has ended meanwhile.
        let text = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        nanos += text.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(nanos))
}

/// The memory of a process as reported by the kernel, in MiB.
pub(super) struct Memory {
    pub(super) resident: f64,
    proportional: f64,
    pub(super) private: f64,
}

impl Memory {
    pub(super) fn of(running: &Running) -> Result<Self> {
        let path = format!("/proc/{}/smaps_rollup", running.pid());
        let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
        let mib = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
            let kib: f64 = line.trim().trim_end_matches("kB").trim().parse().unwrap_or_default();
            kib / 1024.0
        };
        Ok(Self {
            resident: mib("Rss:"),
            proportional: mib("Pss:"),
            private: mib("Private_Clean:") + mib("Private_Dirty:"),
        })
    }

    fn row(&self, when: &str) -> Row {
        let Self { resident, proportional, private } = self;
        Row {
            what: format!("memory {when} (resident; proportional, private)"),
            aim: String::new(),
            result: format!("{resident:.1} MiB"),
            spread: format!("{proportional:.1}, {private:.1}"),
            ways: [String::new(), String::new(), format!("{resident:.1} MiB")],
            processor: String::new(),
            verdict: Verdict::NoAim,
        }
    }
}

pub(super) fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

pub(super) fn spread(figures: &[f64], digits: usize) -> String {
    let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
    let most = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{least:.digits$} – {most:.digits$}")
}
