//! What people and `toolgate` itself ask of a gateway beside the agents: which tools there are, and
//! what a new grant would see.

pub(crate) mod known;
pub(crate) mod trial;
