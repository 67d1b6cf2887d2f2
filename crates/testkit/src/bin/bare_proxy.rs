//! Runs the bare proxy in front of one server and prints `{"url":…}` as its first line.

use std::io::{Write as _, stdout};

use anyhow::Result;
use clap::Parser;
use http::Uri;
use toolgate_testkit::proxy::BareProxy;

// The same allocator as toolgate, so that the ratio compares only their work.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A bare HTTP reverse proxy, the baseline for the cost of a hop.
#[derive(Parser)]
struct Args {
    /// The server's URL; its path is repeated in the printed URL
    upstream: Uri,
}

// The same runtime as toolgate, for the same reason.
#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let proxy = BareProxy::bind(&args.upstream).await?;
    let url = format!("{}{}", proxy.origin()?, args.upstream.path());
    writeln!(stdout(), "{}", serde_json::json!({ "url": url }))?;
    proxy.run().await;
    Ok(())
}
