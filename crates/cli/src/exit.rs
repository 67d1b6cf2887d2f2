//! Exit codes: 0 ok, 1 a finding, 2 an error, 64 wrong usage.

use std::fmt;
use std::process::ExitCode;

use crate::{log, print};

/// How a verb ended, if it did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    /// Success.
    Ok,
    /// It found something that a script must notice.
    Finding,
    /// A code of its own (`preflight`).
    Code(u8),
}

/// Arguments that contradict each other or the configuration.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// The exit code of a verb; an error is printed to stderr, with its causes and hints.
pub(crate) fn code(done: anyhow::Result<Done>) -> ExitCode {
    match done {
        Ok(Done::Ok) => ExitCode::SUCCESS,
        Ok(Done::Finding) => ExitCode::from(1),
        Ok(Done::Code(code)) => ExitCode::from(code),
        Err(error) => {
            if log::is_json() {
                tracing::error!("{error:#}");
            } else {
                print::err(&format!("toolgate: {error:#}\n"));
            }
            ExitCode::from(if error.is::<Usage>() { 64 } else { 2 })
        }
    }
}

/// Help and version are not errors; anything else that clap rejects is wrong usage.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    let asked = matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if let Err(gone) = error.print() {
        tracing::debug!(%gone, "cannot print the help");
    }
    match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => ExitCode::from(64),
        _ if asked => ExitCode::SUCCESS,
        _ => ExitCode::from(64),
    }
}
