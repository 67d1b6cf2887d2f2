//! The cargo that runs this program.

use std::process::Command;

use crate::root;

/// The cargo that runs us, in the workspace.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}
