//! Runs a fleet and prints `{"registered":…}` as its first line, once all have registered.

use std::io::{Write as _, stdout};

use anyhow::Result;
use clap::Parser;
use toolgate_testkit::fleet::{FleetOptions, start_fleet};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Many programs that dial in and answer at once, for measuring.
#[derive(Parser)]
struct Args {
    /// Where sessions dial in
    url: String,
    /// How many there are
    #[arg(long, default_value_t = 1)]
    sessions: usize,
    /// Tools of each
    #[arg(long, default_value_t = 20)]
    tools: usize,
    /// Infobases that they are spread over
    #[arg(long, default_value_t = 10)]
    bases: usize,
}

// One thread leaves the other processors to what is measured.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let Args { url, sessions, tools, bases } = Args::parse();
    let mut fleet = start_fleet(&FleetOptions { url, sessions, tools, bases }).await?;
    writeln!(stdout(), "{}", serde_json::json!({ "registered": sessions }))?;
    fleet.ended().await
}
