//! How our engine does with documents of different sizes; `cargo xtask bench policy` runs it.
//!
//! Prints nanoseconds a decision and milliseconds a document as one JSON object.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::hint::black_box;

use serde_json::{Value, json};
use toolgate_bench_policy::{ARGUMENTS, Ours, clock, documents};
use toolgate_policy::{Known, Policy};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const FEW: usize = 10;
const MANY: usize = 10_000;
const RULES: usize = 1_000;

fn main() {
    let figures = json!({
        "sizes": sizes(clock::rounds()),
        "load_ms": {
            "tools": load(&documents::tools(MANY)),
            "tools_with_rules": load(&documents::tools_with_rules(MANY)),
            "rules": load(&documents::rules(RULES)),
        },
    });
    println!("{figures}");
}

/// The same call in a small and in a large document, and each of the tools of both in turn.
fn sizes(rounds: usize) -> Value {
    let (few, many) = (documents::tools(FEW), documents::tools(MANY));
    let (few, many) = (Ours::new(&few), Ours::new(&many));
    let names: Vec<String> = (1..MANY).map(documents::tool).collect();
    let (small, large) = (Cell::new(0), Cell::new(0));
    let next = |at: &Cell<usize>, of: usize| {
        at.set((at.get() + 7) % of);
        names[at.get()].as_str()
    };
    assert!(few.allows(&names[FEW - 2], "{}") && many.allows(&names[MANY - 2], "{}"));
    let [few_one, many_one, few_all, many_all] = clock::in_turn(
        rounds,
        [
            &|| few.allows("create_charge", black_box(ARGUMENTS)),
            &|| many.allows("create_charge", black_box(ARGUMENTS)),
            &|| few.allows(next(&small, FEW - 1), black_box("{}")),
            &|| many.allows(next(&large, MANY - 1), black_box("{}")),
        ],
    );
    json!({ "few": few_one, "many": many_one, "few_all": few_all, "many_all": many_all })
}

/// Milliseconds of processor time to read, check and compile a document.
fn load(document: &str) -> f64 {
    clock::processor_ms(|| {
        let loaded = black_box(Policy::load("bench", black_box(document), &Known::default()));
        assert!(loaded.problems.is_empty(), "{:?}", loaded.problems.first());
    })
}
