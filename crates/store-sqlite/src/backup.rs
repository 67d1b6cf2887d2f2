//! Copies of a data folder: for people, and before a migration.
//!
//! Invariant: the copy is one consistent state, also while other processes write.
//! Invariant: an existing folder is never written to.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags};
use toolgate_os::files;
use toolgate_store::{StoreError, StoreErrorKind};

use crate::error::{OrStoreError as _, file_error};
use crate::schema;

/// Beside the database, what a restored folder needs.
const FILES: [&str; 4] = ["audit.key", "audit.pub", "hash.key", "admin.token"];
/// The folder of copies that were made before a migration.
const BACKUPS: &str = "backups";

/// A migration that the next start would make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingMigration {
    /// The schema of the database.
    pub from: usize,
    /// The schema of this program.
    pub to: usize,
    /// Where the folder would be copied to before.
    pub backup: PathBuf,
}

/// Copies a folder to `to`, which must not exist.
pub fn backup(folder: &Path, to: &Path) -> Result<(), StoreError> {
    files::create_folder(to).map_err(|error| file_error(to, &error))?;
    let database = schema::file(to);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(schema::file(folder), flags).or_store_error()?;
    let Some(name) = database.to_str() else {
        let why = format!("`{}` is not UTF-8", database.display());
        return Err(StoreError::new(StoreErrorKind::Internal, why));
    };
    connection.execute("VACUUM INTO ?1", [name]).or_store_error()?;
    make_private(&database)?;
    for name in FILES {
        let (from, copy) = (folder.join(name), to.join(name));
        match fs::copy(&from, &copy) {
            Ok(_) => make_private(&copy)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(file_error(&from, &error)),
        }
    }
    Ok(())
}

fn make_private(path: &Path) -> Result<(), StoreError> {
    let synced = files::make_private(path).and_then(|()| fs::File::open(path)?.sync_all());
    synced.map_err(|error| file_error(path, &error))
}

/// The migration that the next start of this program would make; an error if the folder is newer.
pub fn pending_migration(
    folder: &Path,
    now: Timestamp,
) -> Result<Option<PendingMigration>, StoreError> {
    let Some(from) = schema::version_of(folder)? else { return Ok(None) };
    let to = schema::VERSION;
    if from == 0 || from == to {
        return Ok(None);
    }
    if from > to {
        return Err(schema::wrong_version(from));
    }
    let name = format!("schema-{from}-{}", now.strftime("%Y%m%dT%H%M%SZ"));
    Ok(Some(PendingMigration { from, to, backup: folder.join(BACKUPS).join(name) }))
}

/// Copies the folder, if its database is about to be migrated.
pub(crate) fn before_migration(folder: &Path, now: Timestamp) -> Result<(), StoreError> {
    let Some(pending) = pending_migration(folder, now)? else { return Ok(()) };
    let backups = folder.join(BACKUPS);
    files::create_folders(&backups).map_err(|error| file_error(&backups, &error))?;
    if pending.backup.exists() {
        // Another process migrates at this moment.
        return Ok(());
    }
    backup(folder, &pending.backup)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn old_folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let compat = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compat/schema-2");
        for file in fs::read_dir(compat).unwrap().flatten() {
            fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
        }
        folder
    }

    #[test]
    fn an_old_folder_is_copied_before_it_is_migrated() {
        let now: Timestamp = "2026-11-18T12:00:00Z".parse().unwrap();
        let folder = old_folder();
        let pending = pending_migration(folder.path(), now).unwrap().unwrap();
        assert_eq!((pending.from, pending.to), (2, schema::VERSION));
        assert!(pending.backup.ends_with("backups/schema-2-20261118T120000Z"));
        assert!(!pending.backup.exists(), "looking changes nothing");
        before_migration(folder.path(), now).unwrap();
        assert_eq!(schema::version_of(&pending.backup).unwrap(), Some(2));
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(pending.backup.clone()), 0o700);
        assert_eq!(mode(pending.backup.join("toolgate.db")), 0o600);
        before_migration(folder.path(), now).unwrap();
        assert!(backup(folder.path(), &pending.backup).is_err(), "an existing folder stays");
    }

    #[test]
    fn a_newer_folder_is_refused_with_the_reason() {
        let folder = old_folder();
        let sql = Connection::open(schema::file(folder.path())).unwrap();
        sql.pragma_update(None, "user_version", 999).unwrap();
        drop(sql);
        let refused = pending_migration(folder.path(), Timestamp::UNIX_EPOCH).unwrap_err();
        assert!(refused.to_string().contains("schema 999, newer than"), "{refused}");
    }
}
