//! The configuration as its users meet it: files in, settings or problems out.
//!
//! `UPDATE=1 cargo test -p toolgate-config` rewrites golden files and the reference page.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic, in their helpers too"
)]

#[path = "suite/defaults.rs"]
mod defaults;
#[path = "suite/golden.rs"]
mod golden;
#[path = "suite/import.rs"]
mod import;
#[path = "suite/lowering.rs"]
mod lowering;
#[path = "suite/mistakes.rs"]
mod mistakes;
#[path = "suite/reference.rs"]
mod reference;
#[path = "suite/robust.rs"]
mod robust;
#[path = "suite/schema.rs"]
mod schema;
#[path = "suite/secrets.rs"]
mod secrets;
#[path = "suite/support.rs"]
mod support;
