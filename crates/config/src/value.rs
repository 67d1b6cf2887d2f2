//! The types of values: each has a reader and a schema.

mod address;
mod duration;
mod number;
mod reference;
mod secret;
mod syslog;
mod text;
mod token;
mod word;

pub use address::{Cidr, HttpOrigin};
pub use reference::Expanded;
pub use secret::Secret;
pub use syslog::Syslog;
pub use token::TokenHash;

pub(crate) use address::{HostName, Listener};
pub(crate) use duration::Period;
pub(crate) use number::{Size, Whole, within};
pub(crate) use reference::{Scope, expand, read_bytes, unreadable, why};
pub(crate) use text::{Date, Pattern, Scalar, Text};
pub(crate) use token::{Sha256Hex, TokenReference, one_token};
pub(crate) use word::{Keyword, Switch, Word, one_of, words};
