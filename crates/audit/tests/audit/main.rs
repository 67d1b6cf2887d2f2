//! Rows, chain, tampering, arguments, denials.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod arguments;
mod chain;
mod coalesce;
mod error_codes;
mod support;
mod tamper;
