//! Figures of several endpoints, taken in turn and compared: a temporary disturbance affects all of
//! them.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::Extent;
use super::arena::{Arena, Running};
use super::measure::{median, processor_time, spread};
use super::table::{Row, Verdict};

/// An endpoint of a toolgate.
pub(super) struct Place {
    pub(super) url: String,
    pid: u32,
}

/// Figures of one endpoint in one round.
#[derive(Default, Clone, Copy)]
pub(super) struct Taken {
    pub(super) micros: f64,
    processor: f64,
}

/// Loads every endpoint in turn, for several rounds.
pub(super) fn turns(
    arena: &Arena,
    places: &[Place],
    extent: &Extent,
    figure: &str,
    load: impl Fn(usize) -> Vec<String>,
) -> Result<Vec<Vec<Taken>>> {
    let mut rounds = Vec::with_capacity(extent.rounds);
    for number in 0..extent.rounds {
        let mut taken = vec![Taken::default(); places.len()];
        let mut order: Vec<_> = places.iter().zip(&mut taken).enumerate().collect();
        if number % 2 == 1 {
            order.reverse();
        }
        for (place, (at, taken)) in order {
            let words = load(place);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            *taken = at.take(arena, &words, extent.round, figure)?;
        }
        rounds.push(taken);
    }
    Ok(rounds)
}

/// The ratio of two endpoints, where the work differs by `more`.
pub(super) fn ratio_row(
    what: String,
    aim: f64,
    rounds: &[Vec<Taken>],
    base: usize,
    place: usize,
    more: f64,
) -> Row {
    let at = |round: &Vec<Taken>, place: usize| round.get(place).copied().unwrap_or_default();
    let ratios: Vec<f64> = rounds
        .iter()
        .map(|round| at(round, place).micros / at(round, base).micros / more)
        .collect();
    let middle = |place: usize, figure: fn(Taken) -> f64| {
        median(&rounds.iter().map(|round| figure(at(round, place))).collect::<Vec<_>>())
    };
    let times = |figure: fn(Taken) -> f64| (middle(base, figure), middle(place, figure));
    let (before, after) = times(|taken| taken.micros);
    let (cpu_before, cpu_after) = times(|taken| taken.processor);
    let ratio = median(&ratios);
    Row {
        what,
        aim: format!("≤ {aim}×"),
        result: format!("{ratio:.2}×"),
        spread: spread(&ratios, 2),
        ways: [String::new(), String::new(), format!("{before:.0} → {after:.0} µs")],
        processor: format!("{cpu_before:.0} → {cpu_after:.0} µs (toolgate both)"),
        verdict: Verdict::of(ratio <= aim),
    }
}

// === impl Place ===

impl Place {
    /// The endpoint at this path of a toolgate.
    pub(super) fn of(toolgate: &Running, path: &str) -> Result<Self> {
        Ok(Self { url: format!("{}/{path}", toolgate.url("mcp")?), pid: toolgate.pid() })
    }

    fn take(&self, arena: &Arena, words: &[&str], round: Duration, figure: &str) -> Result<Taken> {
        let before = processor_time(self.pid)?;
        let report = arena.load(&self.url, words, round)?;
        let spent = processor_time(self.pid)?.saturating_sub(before);
        if let Some(error) = report.get("first_error").and_then(Value::as_str) {
            anyhow::bail!("{error}");
        }
        let number = |key: &str| report.get(key).and_then(Value::as_f64);
        let micros = number(figure).with_context(|| format!("the report has no `{figure}`"))?;
        let answers = number("answers").unwrap_or_default();
        Ok(Taken { micros, processor: spent.as_secs_f64() * 1e6 / answers })
    }
}
