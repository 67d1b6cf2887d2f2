//! Development commands of this workspace: `cargo xtask <verb>`.
//!
//! Start at [`run`]: one verb, one module. Nothing here is part of the product.
//! Invariant: no verb skips a part silently; what cannot run is a failure with its reason.

mod bench;
mod book;
mod cargo;
mod catalogue;
mod clients;
mod closing;
mod compare;
mod conformance;
mod console;
mod fuzz;
mod gate;
mod monitoring;
mod mutants;
mod peers;
mod process;
mod readers;
mod real;
mod report;
mod soak;
mod test;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask <verb>

  test                all tests, as on a fresh machine (installs what it needs)
  test --quick        only what needs nothing but cargo
  test --only PART    one part and the parts it needs
  test --list         the names of the parts
  bench [--quick] [--only NAME] [--toolgate PATH]
                      speed against a direct connection and a bare proxy
  bench policy [--quick | --gate | --bless]
                      speed of the policy engine, beside two others; instruction counts
  bench classify      definitions classified per second on one core
  bench console [--quick] [--toolgate PATH]
                      the console in a browser with 1 M audit rows and 1,000 tools; after `test --only peers`
  book                the documentation as a book in target/book; needs mdBook
  catalogue [NAME…]   scan the public servers of the catalogue again, all or those named
  console [--debug] [NAME…]
                      the console in a real browser, all scenarios or those named; after
                      `test --only peers` and `test --only build`; `--debug`: the debug binary
  scan                `toolgate scan` of the real servers; after the same
  monitoring          the alert rules under Prometheus, on a gateway (the debug binary)
  screenshots         every page of the console to docs/screenshots, with the debug binary
  mutants [all | NAME…]
                      tests fail on planted mistakes: a tenth of them by day, all or those named
  fuzz [SECONDS]      every fuzz target for SECONDS each (default 60)
  soak [SECONDS]      the heavy counts, then every fuzz target for SECONDS each (default 900)
  soak PART           one of the heavy counts: storm, misroute, policy, kill, exact, flaps, reload,
                      mutants";

fn main() -> ExitCode {
    process::end_children_on_signal();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report::say(&format!("xtask: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// The workspace's folder.
fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Cargo's target folder, also used for the peers of the tests.
fn target() -> PathBuf {
    let set = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    root().join(set.unwrap_or_else(|| "target".into()))
}

fn run(words: &[&str]) -> Result<()> {
    match words {
        ["test", rest @ ..] => test::run(rest),
        ["bench", rest @ ..] => bench::run(rest),
        ["book"] => book::run(),
        ["catalogue", rest @ ..] => catalogue::run(rest),
        ["screenshots"] => console::screenshots(),
        ["console", rest @ ..] => console::run(rest),
        ["scan"] => real::scan(),
        ["monitoring"] => monitoring::run(),
        ["mutants", rest @ ..] => mutants::run(rest),
        ["fuzz", rest @ ..] => fuzz::run(rest),
        ["soak", rest @ ..] => soak::run(rest),
        [] | ["help" | "--help" | "-h"] => {
            report::say(USAGE);
            Ok(())
        }
        [verb, ..] => bail!("unknown verb `{verb}`\n\n{USAGE}"),
    }
}
