//! The figures of one load run.

use std::time::Duration;

use serde::Serialize;

use super::{LoadLength, LoadPlan, Outcome};

/// What a load run measured; times in microseconds, over all clients.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadReport {
    /// How many clients ran.
    pub clients: usize,
    /// The number of correct answers in the measured part.
    pub requests: usize,
    /// The number of correct answers in the whole run, including warm-up.
    pub answers: u64,
    /// The number of wrong or missing answers in the whole run.
    pub errors: u64,
    /// The first error.
    pub first_error: Option<String>,
    /// The duration of the measured part.
    pub seconds: f64,
    /// Correct answers per second.
    pub per_second: f64,
    /// Half the answers took at most this.
    pub p50_us: f64,
    /// Nine in ten took at most this.
    pub p90_us: f64,
    /// Ninety-nine in a hundred took at most this.
    pub p99_us: f64,
    /// The slowest.
    pub max_us: f64,
    /// The average.
    pub mean_us: f64,
}

impl LoadReport {
    pub(super) fn new(plan: &LoadPlan, outcomes: Vec<Outcome>) -> Self {
        let measured = match plan.length {
            LoadLength::Time { measured, .. } => measured,
            LoadLength::Count { .. } => {
                let first = outcomes.iter().filter_map(|o| o.span).map(|(first, _)| first).min();
                let last = outcomes.iter().filter_map(|o| o.span).map(|(_, last)| last).max();
                first.zip(last).map_or(Duration::ZERO, |(first, last)| last - first)
            }
        };
        let answers = outcomes.iter().map(|outcome| outcome.answers).sum();
        let errors = outcomes.iter().map(|outcome| outcome.errors).sum();
        let first_error = outcomes.iter().find_map(|outcome| outcome.first_error.clone());
        // Exact samples: even a minute at full speed is a few megabytes.
        let mut samples: Vec<_> = outcomes.into_iter().flat_map(|o| o.samples).collect();
        samples.sort_unstable();
        let count = u32::try_from(samples.len()).unwrap_or(u32::MAX);
        let mean = samples.iter().sum::<Duration>().checked_div(count).unwrap_or_default();
        let seconds = measured.as_secs_f64();
        Self {
            clients: plan.clients,
            requests: samples.len(),
            answers,
            errors,
            first_error,
            seconds,
            per_second: if seconds > 0.0 { f64::from(count) / seconds } else { 0.0 },
            p50_us: micros(percentile(&samples, 50)),
            p90_us: micros(percentile(&samples, 90)),
            p99_us: micros(percentile(&samples, 99)),
            max_us: micros(percentile(&samples, 100)),
            mean_us: micros(mean),
        }
    }
}

/// The nearest-rank percentile of sorted samples; zero if there are none.
pub(super) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
