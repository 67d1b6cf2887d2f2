//! A child that ignores SIGTERM, with a child that does too.

use std::io;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use signal_hook::consts::SIGTERM;

use super::GRANDCHILD;

/// Ignores SIGTERM and starts the grandchild: this program again, in the same process group, with
/// the same output.
pub(super) fn ignore_sigterm_with_child() -> io::Result<()> {
    ignore_sigterm()?;
    let own_words = std::env::args_os().skip(1).take_while(|word| word == super::CHILD_ARGUMENT);
    // INVARIANT: never waited for; it must outlive this process unless the group is killed.
    drop(
        Command::new(std::env::current_exe()?)
            .args(own_words)
            .arg(GRANDCHILD)
            .stdin(Stdio::null())
            .spawn()?,
    );
    Ok(())
}

/// The main loop of the grandchild, and of a child whose input has ended.
pub(super) fn run_forever() -> io::Result<()> {
    ignore_sigterm()?;
    loop {
        std::thread::sleep(Duration::from_hours(1));
    }
}

fn ignore_sigterm() -> io::Result<()> {
    // The flag is never read.
    signal_hook::flag::register(SIGTERM, Arc::new(AtomicBool::new(false))).map(drop)
}
