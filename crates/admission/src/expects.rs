//! What kind of answer a request expects, and with it how a refusal or a failure is put.

use toolgate_mcp::method;

/// What kind of answer the agent expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expects {
    /// A tool result.
    ToolResult,
    /// What is read of a resource.
    Resource,
    /// Tools.
    Tools,
    /// Prompts.
    Prompts,
    /// Any other result.
    Other,
}

impl Expects {
    /// What a request of this method expects.
    pub fn of(method: &str) -> Self {
        match method {
            method::TOOLS_CALL => Self::ToolResult,
            method::RESOURCES_READ | method::RESOURCES_SUBSCRIBE => Self::Resource,
            method::TOOLS_LIST => Self::Tools,
            method::PROMPTS_LIST => Self::Prompts,
            _ => Self::Other,
        }
    }
}
