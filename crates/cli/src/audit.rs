//! `toolgate audit …`: verifying and reading the audit of a data folder.
//!
//! Invariant: the folder is opened for reading only, and the lock of `serve` is never taken; a
//! gateway that runs on it notices nothing.
//! Invariant: nothing of a call is shown that its rows do not hold, but for the line of its rule
//! where the document is still the same (`place`).
//!
//! One file per verb; `table` is how rows look to people.

mod key;
mod list;
mod place;
mod show;
mod table;
mod tail;
mod verify;

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use toolgate_store_sqlite::AuditReader;

use crate::args::{AuditArgs, AuditVerb, DataArgs};
use crate::data::find_data;
use crate::exit::Done;

pub(crate) fn run(args: &AuditArgs) -> anyhow::Result<Done> {
    match &args.verb {
        AuditVerb::Verify(args) => verify::run(args),
        AuditVerb::List(args) => list::run(args),
        AuditVerb::Show(args) => show::run(args),
        AuditVerb::Tail(args) => tail::run(args),
    }
}

/// The folder and its audit.
fn open(args: &DataArgs) -> anyhow::Result<(PathBuf, AuditReader)> {
    let folder = find_data(args.data.as_deref(), args.config.as_deref())?;
    let shown = folder.display();
    match AuditReader::open(&folder)
        .with_context(|| format!("the audit in `{shown}` cannot be read"))?
    {
        Some(audit) => Ok((folder, audit)),
        None => bail!(
            "there is no audit in `{shown}`: `toolgate serve` makes one there; say where it is with --data"
        ),
    }
}
