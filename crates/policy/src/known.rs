//! What a reader of policies knows of the installation: configured servers and the tools they list.

use crate::Class;

/// What is known of the world a policy is for. Empty is fine: then less is checked.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Names of configured servers; `server__tool` is read as `server/tool` for these.
    pub servers: Vec<String>,
    /// Tools that servers list; `None` when nobody has asked them.
    pub tools: Option<Vec<KnownTool>>,
}

/// A tool some server lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownTool {
    /// Its server word.
    pub server: String,
    /// Its own name.
    pub name: String,
    /// Its risk class.
    pub class: Class,
}
