//! The store in SQLite: the suite, several processes, kills, tampering, full disks.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod compat;
mod disk;
mod folder;
mod kill;
mod open;
mod place;
mod processes;
mod tamper;
mod vandal;

use place::Folder;
use toolgate_store::conformance;

conformance!(Folder::default());
