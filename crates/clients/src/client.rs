//! The table of MCP clients: ids, files, and the shape of an entry.

use std::path::{Path, PathBuf};

use crate::value::FileValue;

/// An MCP client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpClient {
    /// Claude Code.
    ClaudeCode,
    /// Claude Desktop, which only starts programs.
    ClaudeDesktop,
    /// Cursor.
    Cursor,
    /// VS Code with Copilot.
    VsCode,
    /// Windsurf.
    Windsurf,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Cline, an extension of VS Code.
    Cline,
    /// Zed.
    Zed,
}

/// The format of a client's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON, with comments where the client accepts them.
    Json,
    /// TOML.
    Toml,
}

/// Folders of a user, from the environment.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// The home folder.
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME`, `~/Library/Application Support` or `%APPDATA%`.
    pub config: PathBuf,
}

/// How a client reaches toolgate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientEntry {
    /// The endpoint.
    pub url: String,
    /// The value of the `Authorization` header, if a token is needed.
    pub authorization: Option<String>,
    /// The program and arguments of a bridge, for clients that only start programs.
    pub command: Vec<String>,
}

impl McpClient {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Windsurf,
        Self::Codex,
        Self::Gemini,
        Self::Cline,
        Self::Zed,
    ];

    /// The id on the command line.
    pub fn id(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Windsurf => "windsurf",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cline => "cline",
            Self::Zed => "zed",
        }
    }

    /// The client of this id.
    pub fn of_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|client| client.id() == id)
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Windsurf => "Windsurf",
            Self::Codex => "Codex CLI",
            Self::Gemini => "Gemini CLI",
            Self::Cline => "Cline",
            Self::Zed => "Zed",
        }
    }

    /// Its file for all projects of a user.
    pub fn file(self, places: &Places) -> PathBuf {
        let Places { home, config } = places;
        let cline =
            "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json";
        match self {
            Self::ClaudeCode => home.join(".claude.json"),
            Self::ClaudeDesktop => config.join("Claude/claude_desktop_config.json"),
            Self::Cursor => home.join(".cursor/mcp.json"),
            Self::VsCode => config.join("Code/User/mcp.json"),
            Self::Windsurf => home.join(".codeium/windsurf/mcp_config.json"),
            Self::Codex => home.join(".codex/config.toml"),
            Self::Gemini => home.join(".gemini/settings.json"),
            Self::Cline => config.join(cline),
            Self::Zed => config.join("zed/settings.json"),
        }
    }

    /// Files, folders and programs that show that it is installed.
    pub fn traces(self, places: &Places) -> (Vec<PathBuf>, &'static [&'static str]) {
        let Places { home, config } = places;
        let (folders, programs): (Vec<PathBuf>, &'static [&'static str]) = match self {
            Self::ClaudeCode => (vec![home.join(".claude")], &["claude"]),
            Self::ClaudeDesktop => (vec![config.join("Claude")], &[]),
            Self::Cursor => (vec![home.join(".cursor")], &["cursor"]),
            Self::VsCode => (vec![home.join(".vscode"), config.join("Code")], &["code"]),
            Self::Windsurf => (vec![home.join(".codeium/windsurf")], &["windsurf"]),
            Self::Codex => (vec![home.join(".codex")], &["codex"]),
            Self::Gemini => (vec![home.join(".gemini")], &["gemini"]),
            Self::Cline => {
                (vec![config.join("Code/User/globalStorage/saoudrizwan.claude-dev")], &[])
            }
            Self::Zed => (vec![config.join("zed")], &["zed", "zeditor"]),
        };
        (folders.into_iter().chain([self.file(places)]).collect(), programs)
    }

    /// The format of its file.
    pub fn format(self) -> Format {
        match self {
            Self::Codex => Format::Toml,
            _ => Format::Json,
        }
    }

    /// The key under which its servers are.
    pub fn key(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            Self::Codex => "mcp_servers",
            Self::Zed => "context_servers",
            _ => "mcpServers",
        }
    }

    /// Whether it only starts programs, and needs `toolgate run` as a bridge.
    pub fn needs_bridge(self) -> bool {
        self == Self::ClaudeDesktop
    }

    /// The entry of toolgate in its file.
    pub fn entry(self, entry: &ClientEntry) -> FileValue {
        if self.needs_bridge() {
            let mut words = entry.command.iter().map(FileValue::text);
            let program = words.next().unwrap_or(FileValue::Null);
            return FileValue::object([
                ("command", program),
                ("args", FileValue::List(words.collect())),
            ]);
        }
        let (kind, address) = match self {
            Self::ClaudeCode | Self::VsCode => (Some("http"), "url"),
            Self::Cline => (Some("streamableHttp"), "url"),
            Self::Windsurf => (None, "serverUrl"),
            Self::Gemini => (None, "httpUrl"),
            _ => (None, "url"),
        };
        let mut members: Vec<(&str, FileValue)> = Vec::new();
        members.extend(kind.map(|kind| ("type", FileValue::text(kind))));
        members.push((address, FileValue::text(&entry.url)));
        if let Some(authorization) = &entry.authorization {
            let headers = if self == Self::Codex { "http_headers" } else { "headers" };
            let value = FileValue::text(authorization);
            members.push((headers, FileValue::object([("Authorization", value)])));
        }
        FileValue::object(members)
    }

    /// The client whose file this is, by its path.
    pub fn of_file(path: &Path) -> Option<Self> {
        let shown = path.to_string_lossy().replace('\\', "/");
        let places = Places::default();
        Self::ALL.into_iter().find(|client| {
            let known = client.file(&places).to_string_lossy().into_owned();
            shown.ends_with(&known)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_files_are_unique() {
        let places = Places { home: "/h".into(), config: "/h/.config".into() };
        let mut files: Vec<PathBuf> = McpClient::ALL.map(|client| client.file(&places)).into();
        files.sort();
        files.dedup();
        assert_eq!(files.len(), McpClient::ALL.len());
        for client in McpClient::ALL {
            assert_eq!(McpClient::of_id(client.id()), Some(client));
            assert_eq!(McpClient::of_file(&client.file(&places)), Some(client));
        }
        assert_eq!(McpClient::of_file(Path::new("/p/.mcp.json")), None);
    }
}
