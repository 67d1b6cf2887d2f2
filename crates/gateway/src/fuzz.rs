//! Doors for the fuzz targets (`fuzz/`) to functions that no other crate calls.
//!
//! Invariant: compiled with `--cfg fuzzing` alone; nothing here decides anything.

use toolgate_session::Schema;
pub use toolgate_upstream::fuzz::*;

use crate::aggregate::cursor::Cursor;
use crate::dial_in;

/// What a cursor of an agent says: a server and one of its entries.
pub fn read_cursor(number: usize, given: &str) -> Option<(String, usize)> {
    Cursor::decode(kind(number), given).map(|cursor| (cursor.server, cursor.entry))
}

/// The cursor for an agent.
pub fn write_cursor(number: usize, server: &str, entry: usize) -> String {
    Cursor { server: server.to_owned(), entry }.encode(kind(number))
}

/// Tells whether arguments fit the schema of a session's tool; the last word says whether keys must
/// be spelled as they are declared.
pub fn argument_checker() -> impl Fn(&Schema, &str, bool) -> Result<(), String> {
    dial_in::schema::checker()
}
