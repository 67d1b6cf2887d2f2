//! `toolgate audit …`: verifying and reading the audit of a data folder.
//!
//! Invariant: the folder is opened read-only, and the lock of `serve` is never taken; a running
//! gateway is not affected.
//! Invariant: only the content of rows is shown, plus the line of a rule if the document is still the
//! same (`place`).
//!
//! One file per verb; `table` formats rows for people.

mod export;
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
        AuditVerb::Export(args) => export::run(args),
    }
}

/// The folder and its audit.
fn open(args: &DataArgs) -> anyhow::Result<(PathBuf, AuditReader)> {
    let folder = find_data(args.data.as_deref(), args.config.as_deref())?;
    let shown = folder.display();
    match AuditReader::open(&folder)
        .with_context(|| format!("cannot read the audit in `{shown}`"))?
    {
        Some(audit) => Ok((folder, audit)),
        None => bail!(
            "there is no audit in `{shown}`: `toolgate serve` creates one; name another folder with --data"
        ),
    }
}
