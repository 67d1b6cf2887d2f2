//! The only module that prints. A closed pipe is not an error.

use std::io::{self, Write};

use toolgate_config::{Problem, render};
use toolgate_control::visible;

use crate::log;

/// Writes a result to stdout.
pub(crate) fn out(text: &str) {
    write(&mut io::stdout().lock(), text);
}

/// Writes a result to stdout; `false` if the pipe is closed.
pub(crate) fn out_if_read(text: &str) -> bool {
    let mut to = io::stdout().lock();
    to.write_all(text.as_bytes()).and_then(|()| to.flush()).is_ok()
}

/// Writes a message for people to stderr. If the log is JSON, the message is a log line.
pub(crate) fn err(text: &str) {
    if log::is_json() {
        let text = text.trim();
        if !text.is_empty() {
            tracing::info!("{text}");
        }
        return;
    }
    write(&mut io::stderr().lock(), text);
}

/// Writes problems of a configuration to stderr, with what others wrote made safe for a terminal.
pub(crate) fn problems(problems: &[Problem]) {
    err(&visible(&render(problems)));
}

/// Confirms a change to people: one sentence on stderr.
pub(crate) fn done(sentence: &str) {
    err(&format!("{}\n", visible(sentence)));
}

fn write(to: &mut dyn Write, text: &str) {
    let written = to.write_all(text.as_bytes()).and_then(|()| to.flush());
    if let Err(error) = written {
        tracing::debug!(%error, "cannot print: output is closed");
    }
}
