//! The signals that ask a program to end, or that a program may give another meaning.

use std::io;

use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// A signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessSignal {
    /// A service manager asks the program to end.
    Terminate,
    /// A person asks the program to end: Ctrl-C.
    Interrupt,
    /// The terminal is gone; for a service: read the configuration again.
    HangUp,
}

impl ProcessSignal {
    /// Its number.
    pub fn number(self) -> i32 {
        self.kind().as_raw_value()
    }

    fn kind(self) -> SignalKind {
        match self {
            Self::Terminate => SignalKind::terminate(),
            Self::Interrupt => SignalKind::interrupt(),
            Self::HangUp => SignalKind::hangup(),
        }
    }
}

/// The signals that this process receives from now on, instead of being ended by them.
#[derive(Debug)]
pub struct Signals {
    terminate: Stream,
    interrupt: Stream,
    hang_up: Stream,
}

impl Signals {
    /// To be called inside a tokio runtime.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(ProcessSignal::Terminate.kind())?,
            interrupt: signal(ProcessSignal::Interrupt.kind())?,
            hang_up: signal(ProcessSignal::HangUp.kind())?,
        })
    }

    /// The next signal. Cancel-safe.
    pub async fn next(&mut self) -> ProcessSignal {
        tokio::select! {
            _ = self.terminate.recv() => ProcessSignal::Terminate,
            _ = self.interrupt.recv() => ProcessSignal::Interrupt,
            _ = self.hang_up.recv() => ProcessSignal::HangUp,
        }
    }
}
