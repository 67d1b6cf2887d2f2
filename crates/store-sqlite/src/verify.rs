//! Verifying the audit of a folder, with or without a running gateway.

use std::path::Path;

use toolgate_audit::{Checkpoint, Report, Verifier};
use toolgate_store::Fault;

use crate::{fault::OrFault as _, keys, read, row, schema, sql};

/// Reads the whole audit of a data folder and names the first bad row, if there is one.
/// `elsewhere` are checkpoints that were kept outside the folder.
pub fn verify(folder: &Path, elsewhere: Vec<Checkpoint>) -> Result<Report, Fault> {
    let key = keys::public_key(folder)?;
    let connection = schema::open_reader(folder)?;
    let stored = read::checkpoints(&connection)?;
    let mut verifier = Verifier::new(&key, stored.into_iter().chain(elsewhere));
    let mut statement = connection.prepare(sql::ROWS_ALL).or_fault()?;
    let mut rows = statement.query([]).or_fault()?;
    while let Some(columns) = rows.next().or_fault()? {
        let stored = row::stored(columns);
        let draft = stored.draft.as_ref().map_err(|undecodable| *undecodable);
        if verifier.row(stored.seq, &stored.hash, draft).is_err() {
            break;
        }
    }
    Ok(verifier.finish())
}
