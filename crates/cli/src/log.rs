//! The log: to stderr, as text or as JSON.
//!
//! Invariant: no message carries a secret or the value of an argument; whoever logs sees to that,
//! and the canary test of the whole binary checks it.

use std::io::{IsTerminal, stderr};

use anyhow::Context;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use crate::args::LogFormat;

/// What is logged, as in `info` or `debug,hyper=off`.
const FILTER: &str = "TOOLGATE_LOG";

/// Starts logging.
pub(crate) fn start(format: LogFormat) -> anyhow::Result<()> {
    let wanted = std::env::var(FILTER).unwrap_or_default();
    let filter = EnvFilter::builder()
        .with_default_directive(tracing::Level::INFO.into())
        .parse(&wanted)
        .with_context(|| format!("{FILTER} is not a log filter: `{wanted}`"))?;
    let log = fmt().with_env_filter(filter).with_writer(stderr).with_target(false);
    let started = match format {
        LogFormat::Text => log.with_ansi(colour()).try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("the log could not be started: {error}"))
}

fn colour() -> bool {
    stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
