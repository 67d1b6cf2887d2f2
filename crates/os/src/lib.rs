//! What differs between operating systems: rights of files, locks, signals, process groups, limits of
//! the process, the terminal. Today it speaks Unix only.
//!
//! Each function does one thing and decides nothing: which file is trusted, which process ends and
//! what a person is told is up to the caller.
//!
//! Invariant: no other crate of the product names an API that only Unix has (`xtask/tests/unix.rs`),
//! so a port to another system changes this crate alone.
//! Invariant: it depends on no other crate of toolgate.
//!
//! Start at [`files`].

pub mod datagram;
pub mod files;
pub mod group;
pub mod limits;
pub mod lock;
pub mod process;
pub mod signals;
pub mod terminal;
