//! A thousand simulations, in each of which every promise holds.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Stats, run};

/// The number of simulations per run; `TOOLGATE_SEEDS=n` runs more, `TOOLGATE_SEED=n` only that
/// one.
const SEEDS: u64 = 1_000;

/// Situations that the simulations must reach, and how often at least: a promise that is never
/// tested proves nothing.
const REACHED: [(&str, u64); 31] = [
    ("admitted", 50_000),
    ("answered", 20_000),
    ("side by side", 1_000),
    ("registered", 5_000),
    ("reconnected", 5_000),
    ("taken_over", 1_000),
    ("takeover_refused", 300),
    ("conflict", 200),
    ("register_refused", 300),
    ("bye", 500),
    ("lost", 5_000),
    ("rebound", 200),
    ("expired", 500),
    ("ended", 200),
    ("answer_dropped", 1_000),
    ("late answer", 500),
    ("bad_frame", 300),
    ("not_registered", 300),
    ("dead socket", 500),
    ("quarantined", 1_000),
    ("timeout running", 1_000),
    ("timeout queued", 1_000),
    ("cancelled queued", 300),
    ("cancelled running", 300),
    ("gone running", 500),
    ("gone queued", 300),
    ("session_busy", 500),
    ("session_id_required", 1_000),
    ("crash", 200),
    ("restart", 200),
    ("list changed", 5_000),
];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

fn live(seed: u64) -> Stats {
    run(seed).unwrap_or_else(|what| {
        panic!(
            "seed {seed}: {what}\nreplay: TOOLGATE_SEED={seed} cargo test -p toolgate-session --lib sim::tests::every_promise_holds"
        )
    })
}

/// Runs the simulations on all processors. A failure in one thread stops the others.
fn live_all(seeds: u64) -> Stats {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let failed = &AtomicBool::new(false);
    let mut total = Stats::new();
    std::thread::scope(|scope| {
        let live_some = |first: u64| {
            let mut some = Stats::new();
            for seed in (first..seeds).step_by(usize::try_from(threads).unwrap()) {
                if failed.load(Ordering::Relaxed) {
                    break;
                }
                let _stop = StopOthers(failed);
                for (what, count) in live(seed) {
                    *some.entry(what).or_default() += count;
                }
            }
            some
        };
        let workers: Vec<_> =
            (0..threads).map(|first| scope.spawn(move || live_some(first))).collect();
        for worker in workers {
            let some = worker.join().unwrap_or_else(|what| std::panic::resume_unwind(what));
            for (what, count) in some {
                *total.entry(what).or_default() += count;
            }
        }
    });
    total
}

/// Notifies the other threads of a failure when this one unwinds.
struct StopOthers<'a>(&'a AtomicBool);

impl Drop for StopOthers<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn every_promise_holds() {
    if let Some(seed) = number("TOOLGATE_SEED") {
        println!("{:#?}", live(seed));
        return;
    }
    let seeds = number("TOOLGATE_SEEDS").unwrap_or(SEEDS);
    let total = live_all(seeds);
    println!("{total:#?}");
    let rare: Vec<_> = REACHED
        .iter()
        .filter(|(what, least)| total.get(what).unwrap_or(&0) * SEEDS < least * seeds.min(SEEDS))
        .collect();
    assert!(rare.is_empty(), "hardly ever reached: {rare:?}");
}

#[test]
fn equal_seeds_give_equal_runs() {
    for seed in 0..5 {
        assert_eq!(live(seed), live(seed));
    }
}
