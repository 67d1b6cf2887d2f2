//! Verifying the audit of a folder, with or without a running gateway.

use std::path::Path;

use jiff::Timestamp;
use rusqlite::Connection;
use toolgate_audit::{Checkpoint, Hash, Report, Undecodable, Verifier};
use toolgate_store::{Fault, FaultKind};

use crate::{
    fault::OrFault as _,
    keys, read,
    row::{self, number},
    schema, sql,
};

/// Reads the whole audit of a data folder and names the first bad row, if there is one.
/// `elsewhere` are checkpoints that were kept outside the folder.
pub fn verify(folder: &Path, elsewhere: Vec<Checkpoint>) -> Result<Report, Fault> {
    let key = keys::public_key(folder)?;
    let connection = schema::open_outside(folder)?;
    let stored = checkpoints(&connection)?;
    let mut verifier = Verifier::new(&key, stored.into_iter().chain(elsewhere));
    let mut statement = connection.prepare(sql::ROWS_ALL).or_fault()?;
    let mut rows = statement.query([]).or_fault()?;
    loop {
        let columns = match rows.next().or_fault() {
            Ok(Some(columns)) => columns,
            Ok(None) => break,
            Err(fault) if fault.kind == FaultKind::Corrupt => {
                // The page it stands on is damaged.
                let next = number(verifier.next());
                if verifier.row(next, &[], Err(Undecodable)).is_err() {
                    break;
                }
                continue;
            }
            Err(fault) => return Err(fault),
        };
        let stored = row::stored(columns);
        let draft = stored.draft.as_ref().map_err(|undecodable| *undecodable);
        if verifier.row(stored.seq, &stored.hash, draft).is_err() {
            break;
        }
    }
    Ok(verifier.finish())
}

/// Every checkpoint; one that cannot be read counts as one that nobody signed.
fn checkpoints(connection: &Connection) -> Result<Vec<Checkpoint>, Fault> {
    let mut statement = connection.prepare(sql::CHECKPOINT_ALL).or_fault()?;
    let mut rows = statement.query([]).or_fault()?;
    let mut all = Vec::new();
    while let Some(columns) = rows.next().or_fault()? {
        let seq = columns.get::<_, i64>(0).unwrap_or_default();
        let unsigned = |_| Checkpoint {
            seq: u64::try_from(seq).unwrap_or_default().max(1),
            hash: Hash::default(),
            time: Timestamp::UNIX_EPOCH,
            signature: [0; 64],
        };
        all.push(read::checkpoint(columns).unwrap_or_else(unsigned));
    }
    Ok(all)
}
