//! The kinds of lists that a server may have, and the protocol's names for each.

use toolgate_mcp::method;

/// The maximum length of the name of a tool, prompt or method, in bytes.
pub const NAME: usize = 256;
/// The maximum length of a URI, in bytes.
pub const URI: usize = 8 * 1024;

/// A kind of list.
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
    /// Every kind, in the order in which lists are requested.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// The kind that `method` lists.
    pub fn listed_by(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.method() == method)
    }

    /// The lists that a notification reports as changed.
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

    /// The notification for a change of it.
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

    /// The maximum length of a name that can be called, in bytes.
    pub fn longest(self) -> usize {
        match self {
            Self::Tools | Self::Prompts => NAME,
            Self::Resources | Self::Templates => URI,
        }
    }
}
