//! `toolgate version`.

use crate::exit::Done;
use crate::print;

/// Version, commit and its date; the build script sets the build part.
pub(crate) const VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("TOOLGATE_BUILD"), ")");

#[expect(clippy::unnecessary_wraps, reason = "every verb returns the same")]
pub(crate) fn run() -> anyhow::Result<Done> {
    print::out(&format!("toolgate {VERSION}\n"));
    Ok(Done::Ok)
}
