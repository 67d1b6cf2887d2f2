//! The kind of answer that a request expects; it determines the form of refusals and failures.

use toolgate_mcp::method;

/// The kind of answer that the agent expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerKind {
    /// A tool result.
    ToolResult,
    /// The content of a resource.
    Resource,
    /// A list of tools.
    Tools,
    /// A list of prompts.
    Prompts,
    /// Any other result.
    Other,
}

impl AnswerKind {
    /// The kind of answer to this method.
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
