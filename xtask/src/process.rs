//! External processes: each in a process group of its own, which is ended with everything in it.
//!
//! Invariant: no group outlives this program, whether it ends well, with an error or by a signal.
//! Start at [`run`] for a command that ends by itself and at [`Group::start`] for a server.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::report::say;

/// How long a group may take to end after SIGTERM before it is killed.
const GRACE: Duration = Duration::from_secs(10);
/// How often a process is asked whether it has ended.
const POLL: Duration = Duration::from_millis(20);

/// The running groups. A static, because the signal thread must find all of them.
static ALIVE: Mutex<Alive> = Mutex::new(Alive { groups: BTreeSet::new(), ending: false });

struct Alive {
    groups: BTreeSet<i32>,
    /// A signal was received: nothing is started any more.
    ending: bool,
}

/// A process that leads a group of its own; dropping it ends the whole group.
pub(crate) struct Group {
    name: String,
    child: Child,
    pid: Pid,
}

impl Group {
    /// Starts `command` in a new process group, with standard input closed unless it was set.
    pub(crate) fn start(name: &str, command: &mut Command) -> Result<Self> {
        // Under the lock, so that the signal thread sees either no process or a registered one.
        let mut alive = alive();
        ensure!(!alive.ending, "{name} was not started: received a signal");
        let child = command
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {name} (`{}`)", line(command)))?;
        let pid = Pid::from_child(&child);
        alive.groups.insert(pid.as_raw_pid());
        Ok(Self { name: name.to_owned(), child, pid })
    }

    /// The started process itself, for its pipes.
    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// The exit status if the process has ended.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits for the process to exit; an error after `limit`.
    pub(crate) fn wait(mut self, limit: Duration) -> Result<ExitStatus> {
        match self.wait_until(Instant::now() + limit)? {
            Some(status) => Ok(status),
            None => bail!("{} did not end within {} s", self.name, limit.as_secs()),
        }
    }

    fn wait_until(&mut self, end: Instant) -> Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            if Instant::now() >= end {
                return Ok(None);
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        signal(self.pid, Signal::TERM);
        let in_time = self.wait_until(Instant::now() + GRACE).ok().flatten().is_some();
        if !in_time {
            say(&format!(
                "{} did not end on SIGTERM within {} s, killed",
                self.name,
                GRACE.as_secs()
            ));
        }
        // Also what the leader left behind.
        signal(self.pid, Signal::KILL);
        if !in_time && self.child.wait().is_err() {
            say(&format!("cannot wait for {}", self.name));
        }
        alive().groups.remove(&self.pid.as_raw_pid());
    }
}

/// Runs a command to its end with its output shown; a non-zero exit is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = line(command);
    say(&format!("$ {shown}"));
    let group = Group::start(&shown, command.stdin(Stdio::null()))?;
    succeeded(&shown, group.wait(FOREVER)?)
}

/// Runs a command to its end with its output in `log`; on failure the error carries the log's end.
pub(crate) fn run_logged(command: &mut Command, log: &Path, limit: Duration) -> Result<()> {
    let shown = line(command);
    let file = File::create(log).with_context(|| format!("cannot write `{}`", log.display()))?;
    command.stdin(Stdio::null()).stderr(file.try_clone()?).stdout(file);
    let ended = Group::start(&shown, command).and_then(|group| group.wait(limit));
    ended
        .and_then(|status| succeeded(&shown, status))
        .map_err(|error| anyhow!("{error:#}\n{}", tail(log)))
}

/// What a command prints on standard output; an error if it fails.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = line(command);
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The last lines of a log file, indented, for an error message.
pub(crate) fn tail(log: &Path) -> String {
    let Ok(text) = std::fs::read_to_string(log) else {
        return format!("(no log at `{}`)", log.display());
    };
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.get(lines.len().saturating_sub(40)..).unwrap_or_default();
    format!("end of {}:\n  | {}", log.display(), last.join("\n  | "))
}

/// Ends all groups when this program receives a signal.
pub(crate) fn end_children_on_signal() {
    let mut signals = match signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]) {
        Ok(signals) => signals,
        Err(error) => return say(&format!("signals are not watched: {error}")),
    };
    std::thread::spawn(move || {
        if let Some(number) = signals.forever().next() {
            alive().ending = true;
            signal_all(Signal::TERM);
            let end = Instant::now() + GRACE;
            while !alive().groups.is_empty() && Instant::now() < end {
                std::thread::sleep(POLL);
            }
            signal_all(Signal::KILL);
            #[expect(clippy::exit, reason = "the main thread may be waiting for a child for good")]
            std::process::exit(128 + number);
        }
    });
}

const FOREVER: Duration = Duration::from_hours(24);

fn succeeded(shown: &str, status: ExitStatus) -> Result<()> {
    if status.success() { Ok(()) } else { bail!("`{shown}` failed ({status})") }
}

fn signal(group: Pid, signal: Signal) {
    if kill_process_group(group, signal).is_err() {
        // The group has already ended.
    }
}

fn signal_all(with: Signal) {
    let groups = alive().groups.clone();
    groups.into_iter().filter_map(Pid::from_raw).for_each(|group| signal(group, with));
}

fn alive() -> MutexGuard<'static, Alive> {
    ALIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
