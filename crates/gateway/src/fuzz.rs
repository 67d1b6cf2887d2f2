//! Functions for the fuzz targets (`fuzz/`) that no other crate calls.
//!
//! Invariant: compiled only with `--cfg fuzzing`.

use toolgate_session::Schema;
pub use toolgate_upstream::fuzz::*;

use crate::aggregate::cursor::Cursor;
use crate::dial_in;

/// The server and the entry of a cursor.
pub fn read_cursor(number: usize, given: &str) -> Option<(String, usize)> {
    Cursor::decode(kind(number), given).map(|cursor| (cursor.server, cursor.entry))
}

/// The cursor for an agent.
pub fn write_cursor(number: usize, server: &str, entry: usize) -> String {
    Cursor { server: server.to_owned(), entry }.encode(kind(number))
}

/// Checks arguments against the schema of a session's tool; the flag requires keys in their declared
/// spelling. Returns the error message, if they do not match.
pub fn argument_checker() -> impl Fn(&Schema, &str, bool) -> Option<String> {
    let check = dial_in::schema::checker();
    move |schema, arguments, exact_keys| {
        check(schema, arguments, exact_keys).err().map(|why| why.to_string())
    }
}
