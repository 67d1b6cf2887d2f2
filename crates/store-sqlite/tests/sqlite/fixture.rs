//! A data folder for one test, and other processes that use it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use jiff::Timestamp;
use rusqlite::Connection;
use toolgate_store::{Store, suite::StoreFixture};
use toolgate_store_sqlite::{Durability, OpenOptions, OpenedFolder, Randomness, open};

#[derive(Debug)]
pub(crate) struct SqliteFixture(tempfile::TempDir);

impl Default for SqliteFixture {
    fn default() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

impl SqliteFixture {
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// A plain SQLite connection, as an attacker would use it.
    pub(crate) fn sql(&self) -> Connection {
        Connection::open(self.path().join("toolgate.db")).unwrap()
    }

    /// Copies a folder.
    pub(crate) fn copy_of(other: &Path) -> Self {
        let folder = Self::default();
        for file in fs::read_dir(other).unwrap() {
            let file = file.unwrap();
            if file.file_type().unwrap().is_file() {
                fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
            }
        }
        folder
    }
}

impl StoreFixture for SqliteFixture {
    fn open(&self, now: Timestamp) -> Arc<dyn Store> {
        Arc::new(opened(self.path(), now).store)
    }

    /// A trigger makes every write fail.
    fn set_broken(&self, broken: bool) {
        let sql = if broken {
            "CREATE TRIGGER broken BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'broken'); END"
        } else {
            "DROP TRIGGER broken"
        };
        self.sql().execute_batch(sql).unwrap();
    }

    fn is_durable(&self) -> bool {
        true
    }
}

/// Opens a folder with the suite's key.
pub(crate) fn opened(folder: &Path, now: Timestamp) -> OpenedFolder {
    open(folder, options(Durability::Process), now).unwrap()
}

pub(crate) fn options(durability: Durability) -> OpenOptions {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let owner = NEXT.fetch_add(1, Ordering::Relaxed) | u64::from(std::process::id()) << 32;
    let randomness = Randomness { owner, signing: [42; 32], hashing: [7; 32] };
    OpenOptions::new(durability, randomness)
}

/// Runs one test of this binary as another process, with its folder in the environment.
pub(crate) fn spawn(test: &str, folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env("TOOLGATE_TEST_FOLDER", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The folder, if this process was started by [`spawn`].
pub(crate) fn given() -> Option<PathBuf> {
    std::env::var_os("TOOLGATE_TEST_FOLDER").map(Into::into)
}
