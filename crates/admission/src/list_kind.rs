//! The kinds of lists that a server may have, and the words of the protocol for each.

use toolgate_mcp::method;

/// Bytes that the name of a tool, a prompt or a method may have.
pub const NAME: usize = 256;
/// Bytes that a URI may have.
pub const URI: usize = 8 * 1024;

/// What can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Tools.
    Tools,
    /// Prompts.
    Prompts,
    /// Resources.
    Resources,
    /// Templates of resources.
    Templates,
}

impl Kind {
    /// Every kind, in the order in which lists are asked for.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// What `method` lists.
    pub fn listed_by(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.method() == method)
    }

    /// What a notification says has changed.
    pub fn changed_by(method: &str) -> &'static [Self] {
        match method {
            method::TOOLS_LIST_CHANGED => &[Self::Tools],
            method::PROMPTS_LIST_CHANGED => &[Self::Prompts],
            method::RESOURCES_LIST_CHANGED => &[Self::Resources, Self::Templates],
            _ => &[],
        }
    }

    /// The method that lists it.
    pub fn method(self) -> &'static str {
        match self {
            Self::Tools => method::TOOLS_LIST,
            Self::Prompts => method::PROMPTS_LIST,
            Self::Resources => method::RESOURCES_LIST,
            Self::Templates => method::RESOURCES_TEMPLATES_LIST,
        }
    }

    /// The notification that it has changed.
    pub fn changed(self) -> &'static str {
        match self {
            Self::Tools => method::TOOLS_LIST_CHANGED,
            Self::Prompts => method::PROMPTS_LIST_CHANGED,
            Self::Resources | Self::Templates => method::RESOURCES_LIST_CHANGED,
        }
    }

    /// The capability of a server that has it.
    pub fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources | Self::Templates => "resources",
        }
    }

    /// The member of a result that holds the entries.
    pub fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// The member of an entry that names it.
    pub fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }

    /// How many bytes a name may have so that it can be called.
    pub fn longest(self) -> usize {
        match self {
            Self::Tools | Self::Prompts => NAME,
            Self::Resources | Self::Templates => URI,
        }
    }
}
