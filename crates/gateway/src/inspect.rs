//! Queries of people: which servers and tools are known, and whether a server answers.

pub(crate) mod definition;
pub(crate) mod definitions;
pub(crate) mod known;
pub(crate) mod person_call;
pub(crate) mod resolve;
