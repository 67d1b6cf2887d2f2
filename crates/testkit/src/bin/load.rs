//! Runs one load and prints its figures as one line of JSON.

use std::io::{Write as _, stdout};
use std::time::Duration;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use http::Uri;
use toolgate_testkit::load::{self, LoadLength, LoadPlan, LoadRequest};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Calls an MCP server from many clients concurrently and checks every answer.
#[derive(Parser)]
struct Args {
    /// The MCP endpoint
    url: Uri,
    /// The request to repeat
    #[arg(long, value_enum, default_value_t = Mode::Echo)]
    mode: Mode,
    /// Clients, each with its own connection and session
    #[arg(long, default_value_t = 1)]
    clients: usize,
    /// Measured time in seconds
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Warm-up time in seconds
    #[arg(long, default_value_t = 0.3)]
    warm_up: f64,
    /// Measure this many requests of each client instead, after a tenth as many to warm up
    #[arg(long)]
    count: Option<u64>,
    /// Bytes of a `big` or `structured` result
    #[arg(long, default_value_t = 8_000_000)]
    size: usize,
    /// A bearer token for every request
    #[arg(long)]
    token: Option<String>,
    /// The prefix of tool names at this endpoint
    #[arg(long, default_value = "")]
    prefix: String,
    /// The number of tools that a list must contain
    #[arg(long, default_value_t = 3)]
    tools: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    Echo,
    List,
    Big,
    Structured,
}

// One thread leaves the other processors to the measured process.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args = Args::parse();
    let report = load::run(&args.plan()?).await?;
    writeln!(stdout(), "{}", serde_json::to_string(&report)?)?;
    Ok(())
}

impl Args {
    fn plan(self) -> Result<LoadPlan> {
        let length = match self.count {
            Some(measured) => LoadLength::Count { warm_up: measured.div_ceil(10), measured },
            None => LoadLength::Time {
                warm_up: Duration::try_from_secs_f64(self.warm_up)?,
                measured: Duration::try_from_secs_f64(self.seconds)?,
            },
        };
        let ask = match self.mode {
            Mode::Echo => LoadRequest::Echo,
            Mode::List => LoadRequest::List { tools: self.tools },
            Mode::Big => LoadRequest::Big { size: self.size },
            Mode::Structured => LoadRequest::Structured { size: self.size },
        };
        let Self { url, prefix, token, clients, .. } = self;
        Ok(LoadPlan { url, ask, prefix, token, clients, length })
    }
}
