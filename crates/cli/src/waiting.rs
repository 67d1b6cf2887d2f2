//! Shows what a verb waits for, on stderr.
//!
//! On a terminal one line with a spinner and the elapsed seconds, which is erased at the end;
//! otherwise one line at the start, or nothing.

use std::io::{IsTerminal as _, stderr};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::print;

/// Work that is done sooner is not shown.
const LONG: Duration = Duration::from_millis(400);
const FRAME: Duration = Duration::from_millis(120);
const FRAMES: [char; 4] = ['|', '/', '-', '\\'];

/// Waiting for something; dropping it ends the display.
pub(crate) struct Waiting {
    /// Dropped to stop the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Waiting {
    /// Shows `what` until it is dropped.
    pub(crate) fn start(what: &str) -> Self {
        if !stderr().is_terminal() {
            print::err(&format!("{what} ...\n"));
        }
        Self::on_terminal(what)
    }

    /// The same, but only on a terminal, and only if it takes a while.
    pub(crate) fn on_terminal(what: &str) -> Self {
        if !stderr().is_terminal() {
            return Self { stop: None, thread: None };
        }
        let (stop, stopped) = channel::<()>();
        let what = what.to_owned();
        let thread = std::thread::spawn(move || {
            let began = Instant::now();
            if stopped.recv_timeout(LONG) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
            for frame in FRAMES.iter().cycle() {
                let seconds = began.elapsed().as_secs();
                print::err(&format!("\r{frame} {what} ({seconds} s)"));
                if stopped.recv_timeout(FRAME) == Err(RecvTimeoutError::Disconnected) {
                    break;
                }
            }
            print::err("\r\u{1b}[K");
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.stop = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::debug!("the spinner panicked");
        }
    }
}
