//! The log: to stderr, as text or as JSON.
//!
//! Invariant: no message carries a secret or the value of an argument; the
//! canary test of the whole binary checks it.

use std::io::{IsTerminal, stderr};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use clap::ValueEnum;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

/// The log filter, such as `info` or `debug,hyper=off`.
const FILTER: &str = "TOOLGATE_LOG";

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Whether stderr carries JSON lines only.
static IS_JSON: AtomicBool = AtomicBool::new(false);

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One JSON object per line
    Json,
}

/// Starts logging.
pub(crate) fn start(format: LogFormat) -> anyhow::Result<()> {
    let wanted = std::env::var(FILTER).unwrap_or_default();
    anyhow::ensure!(
        wanted.split(',').all(|directive| is_directive(directive.trim())),
        "{FILTER} is not a log filter: `{wanted}`; write a level ({}), or `info,toolgate_edge=debug`",
        LEVELS.join(", ")
    );
    let filter = EnvFilter::builder()
        .with_default_directive(tracing::Level::INFO.into())
        .parse(&wanted)
        .with_context(|| format!("{FILTER} is not a log filter: `{wanted}`"))?;
    let log = fmt().with_env_filter(filter).with_writer(stderr).with_target(false);
    let started = match format {
        LogFormat::Text => log.with_ansi(colour()).try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    IS_JSON.store(matches!(format, LogFormat::Json), Ordering::Relaxed);
    started.map_err(|error| anyhow::anyhow!("the log could not be started: {error}"))
}

/// Whether messages for people must be log lines.
pub(crate) fn is_json() -> bool {
    IS_JSON.load(Ordering::Relaxed)
}

/// A level, or `module=level`.
fn is_directive(directive: &str) -> bool {
    let is_level = |word: &str| LEVELS.iter().any(|level| level.eq_ignore_ascii_case(word));
    let is_module = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_:-".contains(c))
    };
    match directive.split_once('=') {
        None => directive.is_empty() || is_level(directive),
        Some((module, level)) => is_module(module) && is_level(level),
    }
}

fn colour() -> bool {
    stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_has_levels_and_nothing_else() {
        for good in ["", "info", "WARN", "hyper=off", "toolgate_edge::child=trace"] {
            assert!(is_directive(good), "{good}");
        }
        for bad in ["banana", "inf", "info=", "=info", "hyper=loud", "[span]=info", "a b=info"] {
            assert!(!is_directive(bad), "{bad}");
        }
    }
}
