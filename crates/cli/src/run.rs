//! `toolgate run`: a stdio bridge that an MCP client starts in place of a server.
//!
//! `run/local.rs` decides and records the calls itself, in the data folder; `run/target.rs` finds the
//! server. With `--gateway`, a running gateway does that.
//!
//! Invariant: stdout carries MCP messages and nothing else.
//! Invariant: the exit status is that of the server's process: its code, or 128 + the signal that
//! ended it.

mod local;
mod stdio;
mod target;

use std::process::ExitCode;

use anyhow::Context as _;
use http::Uri;
use http::header::AUTHORIZATION;
use tokio::io::DuplexStream;
use tokio_util::sync::CancellationToken;
use toolgate_config::Config;
use toolgate_edge::remote::{Client as HttpClient, HttpTransport, RemoteConnector, RemoteSpec};
use toolgate_edge::stdio_relay::{RelayLimits, relay};
use toolgate_os::signals::Signals;

use crate::args::RunArgs;
use crate::exit;
use crate::log;

pub(crate) fn run(args: &RunArgs) -> ExitCode {
    match start(args) {
        Ok(code) => ExitCode::from(code),
        Err(error) => exit::code(Err(error)),
    }
}

fn start(args: &RunArgs) -> anyhow::Result<u8> {
    log::start(args.log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let input = stdio::input(runtime.handle());
    let (output, flushed) = stdio::output(runtime.handle());
    let client = Client { input, output };
    let done = if let Some(url) = &args.gateway {
        runtime.block_on(to_gateway(args, url, client))
    } else {
        let target = target::find(args)?;
        runtime.block_on(local::run(args, target, client))
    };
    flushed.wait();
    // A thread may still wait for a line of the client.
    runtime.shutdown_background();
    done
}

/// The MCP client that started this process.
struct Client {
    input: DuplexStream,
    output: DuplexStream,
}

/// Relays the client to a gateway.
async fn to_gateway(args: &RunArgs, url: &str, client: Client) -> anyhow::Result<u8> {
    let endpoint = endpoint(url);
    let uri: Uri =
        endpoint.parse().with_context(|| format!("`{endpoint}` is not a valid address"))?;
    let mut spec = RemoteSpec::new("toolgate", uri);
    spec.transport = HttpTransport::Streamable;
    if let Some(reference) = &args.token {
        spec.headers.push((AUTHORIZATION, target::bearer(reference)?));
    }
    let connector = RemoteConnector::new(HttpClient::new(), spec);
    let defaults = Config::default();
    let body = usize::try_from(defaults.limits.body).unwrap_or(usize::MAX);
    let limits = RelayLimits { body, grace: defaults.shutdown_grace };
    let stop = CancellationToken::new();
    let mut signals = Signals::listen().context("cannot install signal handlers")?;
    let relaying = relay(connector, limits, client.input, client.output, &stop);
    tokio::pin!(relaying);
    loop {
        tokio::select! {
            () = &mut relaying => return Ok(0),
            _ = signals.next() => stop.cancel(),
        }
    }
}

/// The address of an endpoint: a bare address means all servers.
fn endpoint(url: &str) -> String {
    let base = url.trim_end_matches('/');
    let has_path = base.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
    if has_path { base.to_owned() } else { format!("{base}/mcp") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_address_means_all_servers() {
        for (url, expected) in [
            ("http://127.0.0.1:4001", "http://127.0.0.1:4001/mcp"),
            ("http://127.0.0.1:4001/", "http://127.0.0.1:4001/mcp"),
            ("http://127.0.0.1:4001/mcp", "http://127.0.0.1:4001/mcp"),
            ("http://127.0.0.1:4001/mcp/files/", "http://127.0.0.1:4001/mcp/files"),
        ] {
            assert_eq!(endpoint(url), expected);
        }
    }
}
