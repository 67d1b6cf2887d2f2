//! Measures how many definitions one core classifies per second, for `cargo xtask bench classify`.
//!
//! The definitions are the labelled tools of the tests, with a schema of three arguments. It prints one
//! line of JSON: definitions per second of processor time, so that other programs do not disturb it,
//! alone and with parsing.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measuring program")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use toolgate_catalog::{Definition, classify};

const ROUND: Duration = Duration::from_millis(500);
const ROUNDS: usize = 7;

fn main() {
    let raw: Vec<String> = include_str!("../tests/data/labels.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .skip(1)
        .map(definition)
        .collect();
    let parsed: Vec<Definition<'_>> =
        raw.iter().map(|raw| Definition::parse(raw).unwrap()).collect();
    let alone = best(parsed.len(), || {
        for definition in &parsed {
            black_box(classify(black_box(definition)));
        }
    });
    let with_parsing = best(raw.len(), || {
        for raw in &raw {
            black_box(classify(&Definition::parse(black_box(raw)).unwrap()));
        }
    });
    println!(
        "{}",
        serde_json::json!({"definitions": raw.len(), "alone": alone, "with_parsing": with_parsing})
    );
}

fn definition(line: &str) -> String {
    let mut cells = line.split('\t').skip(2);
    let (tool, description) = (cells.next().unwrap(), cells.next().unwrap());
    serde_json::json!({
        "name": tool,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": "The id of the item"},
                "limit": {"type": "integer", "description": "How many items at most"},
                "options": {"type": "object", "properties": {"verbose": {"type": "boolean"}}},
            },
            "required": ["id"],
        },
    })
    .to_string()
}

/// Processor time of this thread, as Linux counts it.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

/// The best of several rounds, in definitions per second.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures for people"
)]
fn best(definitions: usize, run: impl Fn()) -> u64 {
    let mut best = 0.0_f64;
    for _ in 0..ROUNDS {
        let (began, used, mut runs) = (Instant::now(), processor_time(), 0_usize);
        while began.elapsed() < ROUND {
            run();
            runs += 1;
        }
        let used = processor_time().saturating_sub(used);
        best = best.max((runs * definitions) as f64 / used.as_secs_f64());
    }
    best as u64
}
