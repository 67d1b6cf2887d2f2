//! Handlers, by subject.

pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod clock;
pub(crate) mod console;
pub(crate) mod delegation;
pub(crate) mod events;
pub(crate) mod freeze;
pub(crate) mod grants;
pub(crate) mod input;
pub(crate) mod local;
pub(crate) mod people;
pub(crate) mod policies;
pub(crate) mod revocation;
pub(crate) mod servers;
pub(crate) mod standing;
pub(crate) mod status;
pub(crate) mod tool;
pub(crate) mod tools;
