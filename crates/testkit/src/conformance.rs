//! The server that the official conformance suite asks for, under the names that it asks for.
//!
//! It is made of rmcp, an implementation of the protocol that is not ours, and speaks both eras,
//! over streamable HTTP and over stdio. [`FixtureEra`] can take one of them away, which makes it a server
//! that a client of the other era cannot talk to without a bridge.
//!
//! A tool that asks its client something does so in either era: with requests of the server in the
//! older one, with `input_required` in the newer one (`questions`). What is offered and answered
//! without further ado stands in `offer.json` and `answers.json`. Start at `fixture`.

mod fixture;
mod questions;
mod table;
mod tasks;

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::{Parser, ValueEnum};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rmcp::ServiceExt as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::net::unix::pipe::{Receiver, Sender};

use self::fixture::Fixture;

/// Which protocols it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FixtureEra {
    /// All of them.
    Both,
    /// Those with a handshake, to 2025-11-25.
    Legacy,
    /// 2026-07-28.
    Modern,
}

/// The server that the conformance suite asks for
#[derive(Parser)]
#[command(name = "toolgate-conformance")]
struct Args {
    /// How it is reached
    transport: Transport,
    /// Which protocols it speaks
    #[arg(long, default_value = "both")]
    era: FixtureEra,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Transport {
    /// Listens on a free loopback port and prints `{"url": …}`.
    Http,
    /// Speaks on its standard input and output.
    Stdio,
}

/// The whole program, with the words of its command line.
pub fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    let name = std::iter::once("toolgate-conformance".into());
    let words = match Args::try_parse_from(name.chain(words)) {
        Ok(words) => words,
        Err(error) => {
            // Nobody is left to be told that nobody can be told.
            drop(error.print());
            return ExitCode::from(64);
        }
    };
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(io::stderr(), "{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(words: &Args) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("no runtime")?;
    match words.transport {
        Transport::Http => runtime.block_on(listen(words.era)),
        Transport::Stdio => runtime.block_on(speak(words.era)),
    }
}

async fn speak(era: FixtureEra) -> Result<()> {
    let stdin = Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?)
        .context("standard input is no pipe")?;
    let stdout = Sender::from_owned_fd(io::stdout().as_fd().try_clone_to_owned()?)
        .context("standard output is no pipe")?;
    let running = Fixture::new(era, None).serve((stdin, stdout)).await?;
    running.waiting().await?;
    Ok(())
}

async fn listen(era: FixtureEra) -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    writeln!(io::stdout(), "{}", serde_json::json!({ "url": url }))?;
    let sessions = Arc::new(LocalSessionManager::default());
    let fixture = Fixture::new(era, Some(Arc::clone(&sessions)));
    let service = StreamableHttpService::new(
        move || Ok(fixture.clone()),
        sessions,
        StreamableHttpServerConfig::default(),
    );
    loop {
        // An accept error is about one connection: go on.
        let Ok((stream, _)) = listener.accept().await else { continue };
        let service = service.clone();
        tokio::spawn(async move {
            let respond = service_fn(move |request| {
                let service = service.clone();
                async move { Ok::<_, Infallible>(service.handle(request).await) }
            });
            // A connection that the peer breaks off is no event for a test server.
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), respond).await);
        });
    }
}
