//! What `serve` says when it is up: where it listens, what to paste, what is open.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What the start text is about.
pub(crate) struct Start<'a> {
    pub(crate) mcp: Option<&'a str>,
    pub(crate) sessions: Option<&'a str>,
    pub(crate) admin: Option<&'a str>,
    pub(crate) admin_token: &'a Path,
    pub(crate) config: Option<&'a Path>,
    pub(crate) servers: &'a [String],
    pub(crate) clients: &'a [Client],
}

/// An MCP client that may be on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    ClaudeCode,
    Cursor,
    VsCode,
}

impl Client {
    /// Those that have left their traces: a folder in the home, or a program in the path.
    pub(crate) fn found(home: Option<&Path>, path: &[PathBuf]) -> Vec<Self> {
        let in_home = |name: &str| home.is_some_and(|home| home.join(name).exists());
        let program = |name: &str| path.iter().any(|folder| folder.join(name).is_file());
        let mut found = Vec::new();
        if program("claude") || in_home(".claude.json") || in_home(".claude") {
            found.push(Self::ClaudeCode);
        }
        if program("cursor") || in_home(".cursor") {
            found.push(Self::Cursor);
        }
        if program("code") || in_home(".vscode") || in_home(".config/Code") {
            found.push(Self::VsCode);
        }
        found
    }

    fn line(self, server: &str, url: &str) -> String {
        match self {
            Self::ClaudeCode => {
                format!("Claude Code: claude mcp add --transport http {server} {url}")
            }
            Self::Cursor => format!(
                "Cursor:      in ~/.cursor/mcp.json under \"mcpServers\": \
                 \"{server}\": {{\"url\": \"{url}\"}}"
            ),
            Self::VsCode => format!(
                "VS Code:     code --add-mcp '{{\"name\":\"{server}\",\"type\":\"http\",\
                 \"url\":\"{url}\"}}'"
            ),
        }
    }
}

/// The whole text.
pub(crate) fn text(start: &Start<'_>) -> String {
    let mut text = String::from("toolgate is up\n");
    let mut line = |words: String| {
        // Writing to a String cannot fail.
        let _infallible = writeln!(text, "{words}");
    };
    let off = "off";
    line(format!("  agents (MCP)   {}", start.mcp.unwrap_or(off)));
    line(format!("  sessions       {}", start.sessions.unwrap_or(off)));
    line(format!("  people         {}", start.admin.unwrap_or(off)));
    line(format!("  admin token    in the file {}", start.admin_token.display()));
    match start.config {
        Some(file) => line(format!("  configuration  {}", file.display())),
        None => line("  configuration  none: everything has its default".to_owned()),
    }
    line(String::new());
    if let Some(mcp) = start.mcp {
        paste(start, mcp, &mut line);
        line(String::new());
    }
    for words in OPEN {
        line((*words).to_owned());
    }
    text
}

fn paste(start: &Start<'_>, mcp: &str, line: &mut dyn FnMut(String)) {
    let Some(first) = start.servers.first() else {
        line("No server is configured yet. Put one into toolgate.yaml, for example".to_owned());
        for words in FIRST_SERVER {
            line(format!("    {words}"));
        }
        return;
    };
    let url = |server: &str| format!("{mcp}/mcp/{server}");
    for server in start.servers {
        line(format!("  {server:<14} {}", url(server)));
    }
    let clients: &[Client] = match start.clients {
        [] => &[Client::ClaudeCode],
        found => found,
    };
    line(String::new());
    line("To use it, paste:".to_owned());
    for client in clients {
        line(format!("  {}", client.line(first, &url(first))));
    }
}

const FIRST_SERVER: &[&str] = &[
    "version: 1",
    "servers:",
    "  everything:",
    "    command: npx",
    "    args: [-y, \"@modelcontextprotocol/server-everything\"]",
    "and start toolgate again.",
];

const OPEN: &[&str] = &[
    "Open: every user and every program of this machine may call every tool of these servers;",
    "this version asks for no token, applies no policy and keeps no audit.",
    "Denied: other machines (agents are heard on loopback only), and pages of browsers from elsewhere.",
];
