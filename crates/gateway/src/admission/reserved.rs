//! Reserved names: what takes the place of a server's name where no server is meant.

/// Programs that dial in.
pub(crate) const SESSIONS: &str = "sessions";
/// toolgate itself, whose tools are the built-ins.
pub(crate) const TOOLGATE: &str = "toolgate";
