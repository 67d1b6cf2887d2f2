//! Maps errors of SQLite and of the file system to errors of the store.

use std::{io, path::Path};

use rusqlite::ErrorCode;
use toolgate_store::{StoreError, StoreErrorKind};

/// Maps an error of SQLite.
pub(crate) fn store_error(error: &rusqlite::Error) -> StoreError {
    use rusqlite::Error as E;
    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreErrorKind::Full,
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => StoreErrorKind::ReadOnly,
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => StoreErrorKind::Io,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreErrorKind::Busy,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreErrorKind::Corrupt,
        _ => match error {
            E::FromSqlConversionFailure(..)
            | E::IntegralValueOutOfRange(..)
            | E::InvalidColumnType(..) => StoreErrorKind::Corrupt,
            _ => StoreErrorKind::Internal,
        },
    };
    StoreError::new(kind, error.to_string())
}

/// Maps an error of a file.
pub(crate) fn file_error(path: &Path, error: &io::Error) -> StoreError {
    let kind = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreErrorKind::Full,
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            StoreErrorKind::ReadOnly
        }
        _ => StoreErrorKind::Io,
    };
    StoreError::new(kind, format!("`{}`: {error}", path.display()))
}

/// Stored data that toolgate cannot have written.
pub(crate) fn damaged(what: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, format!("`{what}` cannot be read"))
}

/// Converts a result of SQLite.
pub(crate) trait OrStoreError<T> {
    fn or_store_error(self) -> Result<T, StoreError>;
}

impl<T> OrStoreError<T> for rusqlite::Result<T> {
    fn or_store_error(self) -> Result<T, StoreError> {
        self.map_err(|error| store_error(&error))
    }
}
