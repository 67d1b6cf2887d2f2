//! The store in SQLite: conformance suite, several processes, kills, tampering, full disks.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod compat;
mod disk;
mod fixture;
mod folder;
mod kill;
mod open;
mod pending;
mod processes;
mod tamper;
mod tamperer;

use fixture::SqliteFixture;
use toolgate_store::conformance;

conformance!(SqliteFixture::default());
