//! `toolgate completions SHELL` and `toolgate man --write DIR`, made from the arguments.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use clap_complete::Shell;

use crate::args::command;
use crate::exit::Done;
use crate::print;

/// Prints the script that completes words in a shell.
pub(crate) fn run(shell: Shell) -> anyhow::Result<Done> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "toolgate", &mut script);
    print::out(&String::from_utf8(script).context("the script is not UTF-8")?);
    Ok(Done::Ok)
}

/// Writes one manual page per verb into a folder.
pub(crate) fn man(folder: &Path) -> anyhow::Result<Done> {
    let cannot = || format!("cannot write manual pages to `{}`", folder.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    clap_mangen::generate_to(command(), folder).with_context(cannot)?;
    print::done(&format!("manual pages written to `{}`; read them with `man`", folder.display()));
    Ok(Done::Ok)
}
