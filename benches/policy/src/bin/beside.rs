//! The same six conditions decided by three engines; `cargo xtask bench policy` runs it.
//!
//! Prints nanoseconds a decision as one JSON object.
//!
//! Invariant: before anything is timed, every engine has allowed the good call and refused the bad.

#![forbid(unsafe_code)]

use std::hint::black_box;

use serde_json::{Value, json};
use toolgate_bench_policy::rivals::{Cedar, Cel};
use toolgate_bench_policy::{ARGUMENTS, Ours, TOO_MUCH, clock, documents};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    println!("{}", engines(clock::rounds()));
}

/// One call, six conditions, three engines: nanoseconds a decision.
fn engines(rounds: usize) -> Value {
    let (ours, cel, cedar) = (Ours::new(&documents::six()), Cel::new(), Cedar::new());
    for (arguments, good) in [(ARGUMENTS, true), (TOO_MUCH, false)] {
        assert_eq!(ours.allows("create_charge", arguments), good);
        assert_eq!(cel.with_json(arguments), good);
        assert_eq!(cel.ready(&cel.prepare(arguments)), good);
        assert_eq!(cedar.with_json(arguments), good);
    }
    let (context, request) = (cel.prepare(ARGUMENTS), cedar.prepare(ARGUMENTS));
    let [ours, cel_json, cel_ready, cedar_json, cedar_ready] = clock::in_turn(
        rounds,
        [
            &|| ours.allows("create_charge", black_box(ARGUMENTS)),
            &|| cel.with_json(black_box(ARGUMENTS)),
            &|| cel.ready(black_box(&context)),
            &|| cedar.with_json(black_box(ARGUMENTS)),
            &|| cedar.ready(black_box(&request)),
        ],
    );
    json!({
        "ours": ours,
        "cel_json": cel_json,
        "cel_ready": cel_ready,
        "cedar_json": cedar_json,
        "cedar_ready": cedar_ready,
    })
}
