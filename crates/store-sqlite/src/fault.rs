//! What SQLite's and the system's errors mean to the store.

use std::{io, path::Path};

use rusqlite::ErrorCode;
use toolgate_store::{Fault, FaultKind};

/// The fault behind an error of SQLite.
pub(crate) fn fault(error: &rusqlite::Error) -> Fault {
    use rusqlite::Error as E;
    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => FaultKind::Full,
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => FaultKind::ReadOnly,
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => FaultKind::Io,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => FaultKind::Busy,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => FaultKind::Corrupt,
        _ => match error {
            E::FromSqlConversionFailure(..)
            | E::IntegralValueOutOfRange(..)
            | E::InvalidColumnType(..) => FaultKind::Corrupt,
            _ => FaultKind::Internal,
        },
    };
    Fault::new(kind, error.to_string())
}

/// The fault behind an error of a file.
pub(crate) fn file_fault(path: &Path, error: &io::Error) -> Fault {
    let kind = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FaultKind::Full,
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => FaultKind::ReadOnly,
        _ => FaultKind::Io,
    };
    Fault::new(kind, format!("`{}`: {error}", path.display()))
}

/// Stored data that cannot be what we wrote.
pub(crate) fn damaged(what: &str) -> Fault {
    Fault::new(FaultKind::Corrupt, format!("`{what}` cannot be read"))
}

/// Turns a result of SQLite into one of the store.
pub(crate) trait OrFault<T> {
    fn or_fault(self) -> Result<T, Fault>;
}

impl<T> OrFault<T> for rusqlite::Result<T> {
    fn or_fault(self) -> Result<T, Fault> {
        self.map_err(|error| fault(&error))
    }
}
