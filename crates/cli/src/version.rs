//! `toolgate version`.

use crate::exit::Done;
use crate::print;

#[expect(clippy::unnecessary_wraps, reason = "every verb returns the same")]
pub(crate) fn run() -> anyhow::Result<Done> {
    print::out(concat!("toolgate ", env!("CARGO_PKG_VERSION"), "\n"));
    Ok(Done::Ok)
}
