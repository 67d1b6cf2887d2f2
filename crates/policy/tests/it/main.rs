//! Tests of the public face of the crate.
#![expect(clippy::format_collect, reason = "large documents are made, not fast")]
#![expect(clippy::format_push_string, reason = "large documents are made, not fast")]
#![expect(clippy::panic, reason = "what cannot be read is a failing test")]
#![expect(clippy::unwrap_used, reason = "what cannot be read is a failing test")]
#![expect(clippy::disallowed_methods, reason = "cases and examples are files")]

mod budget;
mod cases;
mod codes;
mod generated;
mod hostile;
mod listing;
mod manual;
mod mistakes;
mod schema;
