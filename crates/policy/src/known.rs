//! The installation that a policy is checked against: its servers and their tools.

use crate::Class;

/// What is known of the installation. With less known, less is checked.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Names of configured servers; `server__tool` is read as `server/tool` for these.
    pub servers: Vec<String>,
    /// Tools of servers, of sessions (under each of their names) and built-ins; `None` if no list is
    /// available.
    pub tools: Option<Vec<KnownTool>>,
    /// Servers, or `sessions`, whose tools are not among `tools` because they never listed them.
    pub unlisted: Vec<String>,
}

/// A tool that can be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownTool {
    /// Its server, `sessions` or `toolgate`.
    pub server: String,
    /// Its own name, or one that it is published under.
    pub name: String,
    /// Its risk class.
    pub class: Class,
}
