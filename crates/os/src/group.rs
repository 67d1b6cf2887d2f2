//! A child with its descendants, as one group: signals reach all of them.
//!
//! A process that has left the group with `setsid` is out of reach.

use std::io;
use std::process::ExitStatus;

use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessGroup};
use rustix::io::Errno;
use rustix::process::Signal;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

/// A child that leads its group.
#[derive(Debug)]
pub struct Group(Box<dyn ChildWrapper>);

/// The ends of a child's pipes, as far as the command has asked for them.
pub type Pipes = (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>);

impl Group {
    /// Starts a program as the leader of its own group.
    pub fn start(program: &str, prepare: impl FnOnce(&mut Command)) -> io::Result<Self> {
        let mut command = CommandWrap::with_new(program, prepare);
        command.wrap(ProcessGroup::leader());
        command.spawn().map(Self)
    }

    /// Its pipes, once.
    pub fn pipes(&mut self) -> Pipes {
        (self.0.stdin().take(), self.0.stdout().take(), self.0.stderr().take())
    }

    /// The process id of the leader, until it is reaped.
    pub fn id(&self) -> Option<u32> {
        self.0.id()
    }

    /// Waits until the leader has ended. As process 1 this process adopts orphans, so this does not
    /// wait for the others. Cancel-safe.
    pub async fn leader_ended(&mut self) -> io::Result<ExitStatus> {
        self.0.inner_mut().wait().await
    }

    /// Waits until every process of the group has ended.
    pub async fn all_ended(&mut self) -> io::Result<ExitStatus> {
        self.0.wait().await
    }

    /// Sends a signal to the group.
    pub fn send(&self, number: i32) -> io::Result<()> {
        or_gone(self.0.signal(number))
    }

    /// Asks the group to end.
    pub fn terminate(&self) -> io::Result<()> {
        self.send(Signal::TERM.as_raw())
    }

    /// Ends the group at once.
    pub fn kill(&mut self) -> io::Result<()> {
        or_gone(self.0.start_kill())
    }
}

/// A group without members is the desired state, not an error.
fn or_gone(sent: io::Result<()>) -> io::Result<()> {
    match sent {
        Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(()),
        sent => sent,
    }
}
