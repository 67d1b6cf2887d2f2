//! The only module that prints. A reader that has gone away (a closed pipe) is no error.

use std::io::{self, Write};

/// Writes a result to stdout.
pub(crate) fn out(text: &str) {
    write(&mut io::stdout().lock(), text);
}

/// Writes a result to stdout; `false` if nobody reads it any more.
pub(crate) fn out_if_read(text: &str) -> bool {
    let mut to = io::stdout().lock();
    to.write_all(text.as_bytes()).and_then(|()| to.flush()).is_ok()
}

/// Writes a message for people to stderr.
pub(crate) fn err(text: &str) {
    write(&mut io::stderr().lock(), text);
}

fn write(to: &mut dyn Write, text: &str) {
    let written = to.write_all(text.as_bytes()).and_then(|()| to.flush());
    if let Err(error) = written {
        tracing::debug!(%error, "nobody reads what is printed");
    }
}
