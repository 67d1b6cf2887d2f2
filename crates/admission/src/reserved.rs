//! Reserved names, used where a server name is expected and no server is meant.

/// Programs that dial in.
pub const SESSIONS: &str = "sessions";
/// toolgate itself, whose tools are the built-ins.
pub const TOOLGATE: &str = "toolgate";
