//! Taking times on a machine that does other things too.
//!
//! What is compared runs in turn, a short batch each, for many rounds; a figure is the median over
//! the batches. What takes milliseconds is measured in processor time.

use std::hint::black_box;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// Decisions a batch: long enough for the clock, short enough to fit between interruptions.
const BATCH: usize = 32;

/// How many rounds: fewer with `--quick`.
pub fn rounds() -> usize {
    if std::env::args().any(|word| word == "--quick") { 2_000 } else { 20_000 }
}

/// Median nanoseconds of each way.
pub fn in_turn<const N: usize>(rounds: usize, ways: [&dyn Fn() -> bool; N]) -> [f64; N] {
    let mut taken = [const { Vec::new() }; N];
    for round in 0..rounds + rounds / 10 {
        for (way, taken) in ways.iter().zip(&mut taken) {
            let start = Instant::now();
            for _ in 0..BATCH {
                assert!(black_box(way()));
            }
            // The first tenth only warms up.
            if round >= rounds / 10 {
                taken.push(start.elapsed().as_nanos() as f64 / BATCH as f64);
            }
        }
    }
    taken.map(median)
}

/// Median milliseconds of processor time of something that takes long.
pub fn processor_ms(what: impl Fn()) -> f64 {
    let now = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
    };
    let one = |_| {
        let start = now();
        what();
        now() - start
    };
    median((0..rounds() / 1_000).map(one).collect())
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}
