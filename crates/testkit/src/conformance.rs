//! The server for the official conformance suite, with the tool names that it requires.
//!
//! It is based on rmcp, an independent implementation of the protocol, and speaks both eras, over
//! streamable HTTP and over stdio. [`FixtureEra`] disables one of them, which makes it a server
//! that a client of the other era cannot use without translation.
//!
//! A tool that requests input does so in either era: with server requests in the older one, with
//! `input_required` in the newer one (`questions`). Static offers and answers are in `offer.json`
//! and `answers.json`. Start at `fixture`.

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

/// The protocols that it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FixtureEra {
    /// All of them.
    Both,
    /// Those with a handshake, to 2025-11-25.
    Sessionful,
    /// 2026-07-28.
    Sessionless,
}

/// The server for the conformance suite
#[derive(Parser)]
#[command(name = "toolgate-conformance")]
struct Args {
    /// Its transport
    transport: Transport,
    /// The protocols that it speaks
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

/// The whole program, with its command-line arguments.
pub fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    let name = std::iter::once("toolgate-conformance".into());
    let words = match Args::try_parse_from(name.chain(words)) {
        Ok(words) => words,
        Err(error) => {
            // If printing fails, there is nothing left to do.
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
        .context("standard input is not a pipe")?;
    let stdout = Sender::from_owned_fd(io::stdout().as_fd().try_clone_to_owned()?)
        .context("standard output is not a pipe")?;
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
        // An accept error affects one connection: continue.
        let Ok((stream, _)) = listener.accept().await else { continue };
        let service = service.clone();
        tokio::spawn(async move {
            let respond = service_fn(move |request| {
                let service = service.clone();
                async move { Ok::<_, Infallible>(service.handle(request).await) }
            });
            // A broken connection is expected here.
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), respond).await);
        });
    }
}
