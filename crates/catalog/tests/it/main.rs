//! Tests of the catalogue from outside.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests, and tables that they print"
)]

mod catalogue;
mod classes;
mod data;
mod fresh;
mod golden;
mod hidden;
mod metrics;
mod score;
mod tricky;
