//! Connections and schema versions.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rusqlite::{Connection, OpenFlags};
use toolgate_os::files;
use toolgate_store::{StoreError, StoreErrorKind};

use crate::{
    Durability,
    error::{OrStoreError as _, file_error},
};

/// Each migration makes the next version; they are never edited once released.
const MIGRATIONS: [&str; 6] = [
    include_str!("../sql/migrations/0001_first.sql"),
    include_str!("../sql/migrations/0002_less_for_each_call.sql"),
    include_str!("../sql/migrations/0003_tasks.sql"),
    include_str!("../sql/migrations/0004_filters.sql"),
    include_str!("../sql/migrations/0005_approvals.sql"),
    include_str!("../sql/migrations/0006_standing.sql"),
];

/// The schema version of this program.
pub const VERSION: usize = MIGRATIONS.len();

/// A background thread checkpoints the WAL; beyond this many pages the writer does it.
const WRITER_CHECKPOINT_PAGES: u32 = 4_096;

/// The database of a folder.
pub(crate) fn file(folder: &Path) -> PathBuf {
    folder.join("toolgate.db")
}

/// Whether a folder has a database. A folder that may not be entered is an error.
pub(crate) fn exists(folder: &Path) -> Result<bool, StoreError> {
    let path = file(folder);
    path.try_exists().map_err(|error| file_error(&path, &error))
}

/// Its write-ahead log.
pub(crate) fn wal(folder: &Path) -> PathBuf {
    folder.join("toolgate.db-wal")
}

/// A connection that writes; creates the database and migrates it to the current version.
pub(crate) fn open(folder: &Path, durability: Durability) -> Result<Connection, StoreError> {
    let path = file(folder);
    // SQLite would make it readable for others. The file is only created here, never opened: see
    // the crate's invariants.
    match files::create(&path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(file_error(&path, &error));
        }
        _ => {}
    }
    let mut connection = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    set_wal(&connection)?;
    connection
        .pragma_update(None, "wal_autocheckpoint", WRITER_CHECKPOINT_PAGES)
        .or_store_error()?;
    let synchronous = match durability {
        Durability::Process => "NORMAL",
        Durability::Power => "FULL",
    };
    connection.pragma_update(None, "synchronous", synchronous).or_store_error()?;
    // What is deleted is overwritten, where that costs no further write.
    connection.pragma_update(None, "secure_delete", "FAST").or_store_error()?;
    migrate(&mut connection)?;
    Ok(connection)
}

/// A connection that only reads.
pub(crate) fn open_reader(folder: &Path) -> Result<Connection, StoreError> {
    let connection = connect(&file(folder), OpenFlags::SQLITE_OPEN_READ_WRITE)
        .or_else(|_| connect(&file(folder), OpenFlags::SQLITE_OPEN_READ_ONLY))?;
    connection.pragma_update(None, "query_only", true).or_store_error()?;
    of_this_version(connection)
}

/// A read-only connection for other programs: closing it never checkpoints the WAL.
pub(crate) fn open_read_only(folder: &Path) -> Result<Connection, StoreError> {
    of_this_version(connect(&file(folder), OpenFlags::SQLITE_OPEN_READ_ONLY)?)
}

/// The schema of a folder's database; `None` if there is none.
pub(crate) fn version_of(folder: &Path) -> Result<Option<usize>, StoreError> {
    if !file(folder).is_file() {
        return Ok(None);
    }
    version(&connect(&file(folder), OpenFlags::SQLITE_OPEN_READ_ONLY)?).map(Some)
}

fn of_this_version(connection: Connection) -> Result<Connection, StoreError> {
    match version(&connection)? {
        VERSION => Ok(connection),
        other => Err(wrong_version(other)),
    }
}

/// A connection that checkpoints the WAL.
pub(crate) fn open_checkpointer(folder: &Path) -> Result<Connection, StoreError> {
    connect(&file(folder), OpenFlags::SQLITE_OPEN_READ_WRITE)
}

fn connect(path: &Path, access: OpenFlags) -> Result<Connection, StoreError> {
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).or_store_error()?;
    connection.busy_handler(Some(retry_busy)).or_store_error()?;
    connection.set_prepared_statement_cache_capacity(128);
    Ok(connection)
}

/// Another process is writing: its transactions take microseconds, so retry soon, for up to about
/// five seconds.
fn retry_busy(asked: i32) -> bool {
    let wait = match asked {
        0..20 => 50,
        20..100 => 500,
        _ => 2_000,
    };
    thread::sleep(Duration::from_micros(wait));
    asked < 2_500
}

/// Two processes that create the database at once may find it locked in spite of the busy handler.
fn set_wal(connection: &Connection) -> Result<(), StoreError> {
    for attempt in 0.. {
        let mode =
            connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
        match mode.or_store_error() {
            Ok(mode) if mode == "wal" => break,
            Ok(mode) => {
                let message = format!("the database cannot use a write-ahead log, only `{mode}`");
                return Err(StoreError::new(StoreErrorKind::Internal, message));
            }
            Err(fault) if fault.kind == StoreErrorKind::Busy && attempt < 500 => {
                thread::sleep(Duration::from_millis(10));
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(())
}

fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    if version(connection)? == VERSION {
        return Ok(());
    }
    let immediate = rusqlite::TransactionBehavior::Immediate;
    let transaction = connection.transaction_with_behavior(immediate).or_store_error()?;
    let current = version(&transaction)?;
    if current > VERSION {
        return Err(wrong_version(current));
    }
    for migration in MIGRATIONS.iter().skip(current) {
        transaction.execute_batch(migration).or_store_error()?;
    }
    transaction
        .pragma_update(None, "user_version", i64::try_from(VERSION).unwrap_or(i64::MAX))
        .or_store_error()?;
    transaction.commit().or_store_error()
}

fn version(connection: &Connection) -> Result<usize, StoreError> {
    let version: i64 =
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).or_store_error()?;
    Ok(usize::try_from(version).unwrap_or_default())
}

pub(crate) fn wrong_version(version: usize) -> StoreError {
    let message = if version > VERSION {
        format!(
            "the database has schema {version}, newer than {VERSION} of this toolgate: use a newer toolgate"
        )
    } else {
        format!(
            "the database has the old schema {version}: start this toolgate once to migrate it to {VERSION}"
        )
    };
    StoreError::new(StoreErrorKind::OtherVersion, message)
}
