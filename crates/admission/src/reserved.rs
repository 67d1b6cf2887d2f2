//! Reserved names: what takes the place of a server's name where no server is meant.

/// Programs that dial in.
pub const SESSIONS: &str = "sessions";
/// toolgate itself, whose tools are the built-ins.
pub const TOOLGATE: &str = "toolgate";
