//! This process, and how others end.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};

use rustix::process::{Pid, Signal, geteuid, getpid, kill_process};

/// The user whose rights this process has.
pub fn user() -> u32 {
    geteuid().as_raw()
}

/// The signal that ended a process.
pub fn signal_of(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// Asks a child to end.
pub fn terminate(child: &Child) -> io::Result<()> {
    Ok(kill_process(Pid::from_child(child), Signal::TERM)?)
}

/// Ends this process at once, without any clean-up.
pub fn kill_this() {
    if kill_process(getpid(), Signal::KILL).is_err() {
        std::process::abort();
    }
}
