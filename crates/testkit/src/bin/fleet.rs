//! Runs a fleet and prints `{"registered":…}` as its first line, once all members have registered.

use std::io::{Write as _, stdout};

use anyhow::Result;
use clap::Parser;
use toolgate_testkit::fleet::{FleetOptions, start_fleet};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Many simulated sessions that answer at once, for benchmarks.
#[derive(Parser)]
struct Args {
    /// The URL for sessions
    url: String,
    /// The number of sessions
    #[arg(long, default_value_t = 1)]
    sessions: usize,
    /// The number of tools of each session
    #[arg(long, default_value_t = 20)]
    tools: usize,
    /// The number of infobases
    #[arg(long, default_value_t = 10)]
    bases: usize,
}

// One thread leaves the other processors to the measured process.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let Args { url, sessions, tools, bases } = Args::parse();
    let mut fleet = start_fleet(&FleetOptions { url, sessions, tools, bases }).await?;
    writeln!(stdout(), "{}", serde_json::json!({ "registered": sessions }))?;
    fleet.ended().await
}
