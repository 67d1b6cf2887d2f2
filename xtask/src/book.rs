//! The documentation as a book, by mdBook (`docs/book.toml`, `docs/SUMMARY.md`).
//!
//! No part of the tests: `tests/pages.rs` checks the list of pages without mdBook.

use std::io::ErrorKind;
use std::process::Command;

use anyhow::{Result, bail};

use crate::report::say;
use crate::root;

/// What to do if mdBook is missing.
const INSTALL: &str = "mdBook is not installed; install it with `cargo install mdbook --locked`";

pub(crate) fn run() -> Result<()> {
    match Command::new("mdbook").arg("build").arg(root().join("docs")).status() {
        Ok(status) if status.success() => {
            say("written to target/book/index.html");
            Ok(())
        }
        Ok(status) => bail!("mdbook ended with {status}"),
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(INSTALL),
        Err(error) => bail!("cannot run mdbook: {error}"),
    }
}
