//! Runs the echo server and prints `{"url":…}` as its first line.

use std::io::{Write as _, stdout};

use anyhow::Result;
use clap::Parser;
use toolgate_testkit::echo::{self, EchoOptions};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A very fast MCP server over streamable HTTP, for benchmarks.
#[derive(Parser)]
struct Args {
    /// The number of tools in tools/list
    #[arg(long, default_value_t = 3)]
    tools: usize,
    /// Answer as an SSE stream of one event
    #[arg(long)]
    sse: bool,
}

// One thread: an echo is cheap, and waking other threads would cost more.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args = Args::parse();
    let echo = echo::start_with(EchoOptions {
        tools: args.tools,
        sse: args.sse,
        ..EchoOptions::default()
    })
    .await?;
    writeln!(stdout(), "{}", serde_json::json!({ "url": echo.url() }))?;
    std::future::pending().await
}
