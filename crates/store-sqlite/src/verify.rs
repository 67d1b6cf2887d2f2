//! Verifies the audit of a data folder, with or without a running gateway.

use std::path::Path;

use jiff::Timestamp;
use rusqlite::Connection;
use toolgate_audit::{
    BadRow, Checkpoint, Defect, Hash, PublicKey, Undecodable, Verifier, VerifyReport,
};
use toolgate_store::{StoreError, StoreErrorKind};

use crate::{
    error::OrStoreError as _,
    keys, read,
    row::{self, number},
    schema, sql,
};

/// Reads the whole audit of a data folder and reports the first bad row, if any. `elsewhere` are
/// checkpoints that were stored outside the folder.
pub fn verify(folder: &Path, elsewhere: Vec<Checkpoint>) -> Result<VerifyReport, StoreError> {
    verify_signed_by(&keys::public_key(folder)?, folder, elsewhere)
}

/// Verifies with a key from outside the folder: an attacker who can write to the folder can also
/// replace its key and sign everything again.
pub fn verify_by(
    key: &PublicKey,
    folder: &Path,
    elsewhere: Vec<Checkpoint>,
) -> Result<VerifyReport, StoreError> {
    let mut report = verify_signed_by(key, folder, elsewhere)?;
    if report.first_bad.is_none() && report.rows > 0 && report.signed == 0 {
        // The first row is signed as soon as it is written.
        report.first_bad = Some(BadRow { seq: 1, found: Defect::Signature });
    }
    Ok(report)
}

/// The public key of a folder's checkpoints, as stored in the folder.
pub fn public_key(folder: &Path) -> Result<PublicKey, StoreError> {
    keys::public_key(folder)
}

fn verify_signed_by(
    key: &PublicKey,
    folder: &Path,
    elsewhere: Vec<Checkpoint>,
) -> Result<VerifyReport, StoreError> {
    let connection = schema::open_read_only(folder)?;
    let stored = checkpoints(&connection)?;
    let mut verifier = Verifier::new(key, stored.into_iter().chain(elsewhere));
    match read_rows(&connection, &mut verifier) {
        Err(fault) if fault.kind == StoreErrorKind::Corrupt => {
            // The page that contains the next row is damaged.
            let next = number(verifier.next());
            let _found: Result<(), BadRow> = verifier.row(next, &[], Err(Undecodable));
        }
        read => read?,
    }
    Ok(verifier.finish())
}

/// All rows, up to the first bad one.
fn read_rows(connection: &Connection, verifier: &mut Verifier) -> Result<(), StoreError> {
    let mut statement = connection.prepare(sql::ROWS_ALL).or_store_error()?;
    let mut rows = statement.query([]).or_store_error()?;
    while let Some(columns) = rows.next().or_store_error()? {
        let stored = row::stored(columns);
        let draft = stored.draft.as_ref().map_err(|undecodable| *undecodable);
        if verifier.row(stored.seq, &stored.hash, draft).is_err() {
            break;
        }
    }
    Ok(())
}

/// All checkpoints; an unreadable one is treated as unsigned.
fn checkpoints(connection: &Connection) -> Result<Vec<Checkpoint>, StoreError> {
    let mut all = Vec::new();
    match read_checkpoints(connection, &mut all) {
        Err(fault) if fault.kind == StoreErrorKind::Corrupt => {
            let last = all.last().map_or(0, |checkpoint: &Checkpoint| checkpoint.seq);
            all.push(unsigned(last.saturating_add(1)));
        }
        read => read?,
    }
    Ok(all)
}

fn read_checkpoints(connection: &Connection, all: &mut Vec<Checkpoint>) -> Result<(), StoreError> {
    let mut statement = connection.prepare(sql::CHECKPOINT_ALL).or_store_error()?;
    let mut rows = statement.query([]).or_store_error()?;
    while let Some(columns) = rows.next().or_store_error()? {
        let seq = columns.get::<_, i64>(0).unwrap_or_default();
        let seq = u64::try_from(seq).unwrap_or_default().max(1);
        all.push(read::checkpoint(columns).unwrap_or_else(|_| unsigned(seq)));
    }
    Ok(())
}

fn unsigned(seq: u64) -> Checkpoint {
    let (hash, time) = (Hash::default(), Timestamp::UNIX_EPOCH);
    Checkpoint { seq, hash, time, signature: [0; 64] }
}
