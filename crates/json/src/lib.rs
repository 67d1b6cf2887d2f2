//! Raw JSON: everything the other crates do with JSON text without building a tree.
//!
//! | to | use |
//! |---|---|
//! | look up members of a text that was accepted | [`peek()`], [`members`], [`items`], [`entries`] |
//! | step through one object or list | [`walk::Walk`] |
//! | step through all levels | [`scan::Scan`] |
//! | find where a value ends | [`skip`] |
//! | reject what two parsers could read differently | [`strict::check`] |
//! | read or write a string | [`text()`], [`quote`] |
//! | compare or hash values | [`canonical()`] |
//! | change parts of a text | [`Edit`], [`object::without`] |
//! | compare names as a lenient parser does | [`fold()`] |
//!
//! Invariant: no I/O, no clock, no state. Nothing recurses with the depth of its input, except
//! [`canonical()`], which stops at 128 levels. Results are slices of the input wherever possible.
//! Start at [`walk::Walk`].

mod canonical;
pub mod edit;
mod error;
pub mod escape;
mod fold;
mod number;
pub mod object;
pub mod peek;
pub mod scan;
pub mod skip;
pub mod strict;
mod text;
pub mod walk;

pub use canonical::{NotCanonical, canonical};
pub use edit::{Edit, EditError};
pub use error::{Error, Malformed, shown};
pub use escape::{push_quoted, quote};
pub use fold::{compatible, fold, imitates, is_variant};
pub use number::is_number;
pub use peek::{entries, items, members, peek};
pub use scan::too_deep;
pub use text::{text, unescape};
