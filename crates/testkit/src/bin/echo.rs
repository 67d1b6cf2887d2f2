//! Runs the echo server and prints `{"url":…}` as its first line.

use std::io::{Write as _, stdout};

use anyhow::Result;
use clap::Parser;
use toolgate_testkit::echo::{self, EchoOptions};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A very fast MCP server over streamable HTTP, for measuring.
#[derive(Parser)]
struct Args {
    /// How many tools tools/list names
    #[arg(long, default_value_t = 3)]
    tools: usize,
    /// Answer as an SSE stream of one event
    #[arg(long)]
    sse: bool,
}

// One thread: an echo is cheap, and threads that wake each other would cost more than it does.
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
