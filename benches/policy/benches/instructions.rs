//! Instructions that the engine takes, counted by valgrind: the same on a busy machine.
//!
//! `cargo xtask bench policy --gate` compares them with `instructions.txt`.

use std::hint::black_box;

use gungraun::prelude::*;
use toolgate_bench_policy::{ARGUMENTS, Ours, TOO_MUCH, documents};
use toolgate_policy::{Known, Loaded, Policy, Verdict};

/// Compiled, and asked once, so that what is made on first use is there.
fn ready(document: String) -> Ours {
    let ours = Ours::new(&document);
    ours.verdict("create_charge", ARGUMENTS);
    ours
}

#[library_benchmark]
#[bench::six(ready(documents::six()))]
#[bench::six_of_10000(ready(documents::tools(10_000)))]
fn allow(ours: Ours) -> (Verdict, Ours) {
    let verdict = black_box(ours.verdict(black_box("create_charge"), black_box(ARGUMENTS)));
    (verdict, ours)
}

#[library_benchmark]
#[bench::six(ready(documents::six()))]
fn deny(ours: Ours) -> (Verdict, Ours) {
    let verdict = black_box(ours.verdict(black_box("create_charge"), black_box(TOO_MUCH)));
    (verdict, ours)
}

#[library_benchmark]
#[bench::limited(ready(documents::tools(10)))]
fn limit(ours: Ours) -> (Verdict, Ours) {
    let verdict = black_box(ours.verdict(black_box("update_record_1"), black_box("{}")));
    (verdict, ours)
}

#[library_benchmark]
#[bench::rules_100(documents::rules(100))]
#[bench::tools_1000(documents::tools(1_000))]
fn load(document: String) -> (Loaded, String) {
    let loaded = black_box(Policy::load("bench", black_box(&document), &Known::default()));
    (loaded, document)
}

library_benchmark_group!(name = engine, benchmarks = [allow, deny, limit, load]);
main!(library_benchmark_groups = engine);
