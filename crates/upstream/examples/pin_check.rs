//! Measures what the pin check adds to a call: `cargo run --release -p toolgate-upstream --example
//! pin_check`. Prints nanoseconds per check; nothing is asserted.
#![expect(clippy::print_stdout, reason = "a program that prints figures")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use toolgate_upstream::pins::{Facts, Meeting, Met, PinMode, ServerPins};

const TOOLS: usize = 1_000;
const CHECKS: usize = 2_000_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return println!("no runtime") };
    let _inside = runtime.enter();
    let pins = ServerPins::new("files");
    let met: Vec<Met> = (0..TOOLS).map(tool).collect();
    let class = |_: &str, facts: &Facts| facts.class;
    for mode in [PinMode::First, PinMode::Strict, PinMode::Off] {
        pins.meet(&met, &Meeting { mode, is_whole: true, class: &class });
        let began = Instant::now();
        let mut quarantined = 0_usize;
        for (own, facts) in met.iter().cycle().take(CHECKS) {
            quarantined += usize::from(pins.quarantine(mode, black_box(own), facts).is_some());
        }
        let each = began.elapsed().as_nanos() / CHECKS as u128;
        println!("pin {mode:?}: {each} ns per check of {TOOLS} tools, {quarantined} quarantined");
    }
}

fn tool(n: usize) -> Met {
    let name = format!("get_item_{n}");
    let raw = format!(r#"{{"name":"{name}","description":"Reads item {n}"}}"#);
    let facts = Arc::new(Facts::of(&name, &raw));
    (name.into(), facts)
}
