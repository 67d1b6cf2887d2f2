//! The page that shows a new token, once.

use askama::Template;

use crate::assets;
use crate::shell::Shell;
use crate::visit::{Outcome, page};

/// A new token.
#[derive(Template)]
#[template(path = "token.html")]
pub(crate) struct NewToken {
    pub(crate) s: Shell,
    pub(crate) assets: &'static str,
    pub(crate) name: String,
    pub(crate) token: String,
    /// Where to continue.
    pub(crate) back: &'static str,
    /// Configurations of clients, ready to paste: title and text. Empty for people.
    pub(crate) clients: Vec<(&'static str, String)>,
    pub(crate) cli: String,
}

impl NewToken {
    /// The page of a person's token.
    pub(crate) fn of_person(s: Shell, name: String, token: String, cli: String) -> Self {
        let assets = &assets::VERSION;
        Self { s, assets, name, token, back: "/people", clients: Vec::new(), cli }
    }

    /// The page of a grant's token, with the configuration of each client for the address of agents.
    pub(crate) fn of_grant(s: Shell, name: String, token: String, mcp: &str, cli: String) -> Self {
        let url = format!("{mcp}/mcp");
        let bearer = format!("Bearer {token}");
        let json = |value: serde_json::Value| format!("{value:#}");
        let clients = vec![
            (
                "Claude Code",
                format!(
                    "claude mcp add --transport http toolgate {url} --header \"Authorization: {bearer}\""
                ),
            ),
            (
                "Cursor · ~/.cursor/mcp.json",
                json(
                    serde_json::json!({"mcpServers": {"toolgate": {"url": url, "headers": {"Authorization": bearer}}}}),
                ),
            ),
            (
                "VS Code · .vscode/mcp.json",
                json(
                    serde_json::json!({"servers": {"toolgate": {"type": "http", "url": url, "headers": {"Authorization": bearer}}}}),
                ),
            ),
            (
                "Claude Desktop · claude_desktop_config.json",
                json(
                    serde_json::json!({"mcpServers": {"toolgate": {"command": "toolgate", "args": ["run", "--gateway", url, "--token", "env:TOOLGATE_TOKEN"], "env": {"TOOLGATE_TOKEN": token}}}}),
                ),
            ),
        ];
        Self { s, assets: &assets::VERSION, name, token, back: "/grants", clients, cli }
    }

    /// The page.
    pub(crate) fn show(&self) -> Outcome {
        page(self)
    }
}
