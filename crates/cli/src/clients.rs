//! Lines that connect MCP clients to this gateway.

use std::path::{Path, PathBuf};

/// An MCP client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    ClaudeCode,
    Cursor,
    VsCode,
    Codex,
    Gemini,
    Windsurf,
}

/// The clients to show if none is found on this machine.
pub(crate) const COMMON: &[Client] = &[Client::ClaudeCode, Client::Cursor, Client::VsCode];

impl Client {
    const ALL: [Self; 6] =
        [Self::ClaudeCode, Self::Cursor, Self::VsCode, Self::Codex, Self::Gemini, Self::Windsurf];

    /// Clients of this user, by the environment of this process.
    pub(crate) fn of_this_user() -> Vec<Self> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path: Vec<PathBuf> = std::env::split_paths(&path).collect();
        Self::found(home.as_deref(), &path)
    }

    /// Clients with a folder in the home directory or a program in the path.
    fn found(home: Option<&Path>, path: &[PathBuf]) -> Vec<Self> {
        let in_home = |name: &&str| home.is_some_and(|home| home.join(name).exists());
        let program = |name: &&str| path.iter().any(|folder| folder.join(name).is_file());
        let is_there = |client: &Self| {
            let (programs, traces) = client.traces();
            programs.iter().any(program) || traces.iter().any(in_home)
        };
        Self::ALL.into_iter().filter(is_there).collect()
    }

    /// Its programs, and its files or folders in the home directory.
    fn traces(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::ClaudeCode => (&["claude"], &[".claude.json", ".claude"]),
            Self::Cursor => (&["cursor"], &[".cursor"]),
            Self::VsCode => (&["code"], &[".vscode", ".config/Code"]),
            Self::Codex => (&["codex"], &[".codex"]),
            Self::Gemini => (&["gemini"], &[".gemini"]),
            Self::Windsurf => (&["windsurf"], &[".codeium/windsurf"]),
        }
    }

    /// The line to paste, with the token if one is needed.
    pub(crate) fn line(self, server: &str, url: &str, token: Option<&str>) -> String {
        let bearer = token.map(|token| format!("Bearer {token}"));
        let header = |flag: &str| {
            let header =
                bearer.as_ref().map(|bearer| format!(" {flag} \"Authorization: {bearer}\""));
            header.unwrap_or_default()
        };
        let json = bearer
            .as_ref()
            .map(|bearer| format!(", \"headers\": {{\"Authorization\": \"{bearer}\"}}"));
        let json = json.unwrap_or_default();
        match self {
            Self::ClaudeCode => {
                let header = header("--header");
                format!("Claude Code: claude mcp add --transport http {server} {url}{header}")
            }
            Self::Cursor => format!(
                "Cursor:      in ~/.cursor/mcp.json under \"mcpServers\": \
                 \"{server}\": {{\"url\": \"{url}\"{json}}}"
            ),
            Self::VsCode => format!(
                "VS Code:     code --add-mcp '{{\"name\":\"{server}\",\"type\":\"http\",\
                 \"url\":\"{url}\"{json}}}'"
            ),
            Self::Codex => {
                let headers = bearer
                    .map(|bearer| format!(", http_headers = {{ Authorization = \"{bearer}\" }}"));
                format!(
                    "Codex:       in ~/.codex/config.toml under [mcp_servers]: \
                     {server} = {{ url = \"{url}\"{} }}",
                    headers.unwrap_or_default()
                )
            }
            Self::Gemini => {
                let header = header("--header");
                format!("Gemini CLI:  gemini mcp add --transport http {server} {url}{header}")
            }
            Self::Windsurf => format!(
                "Windsurf:    in ~/.codeium/windsurf/mcp_config.json under \"mcpServers\": \
                 \"{server}\": {{\"serverUrl\": \"{url}\"{json}}}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_found_by_their_traces() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(Client::found(Some(home.path()), &[]), []);
        std::fs::create_dir_all(home.path().join(".codeium/windsurf")).unwrap();
        std::fs::create_dir(home.path().join("bin")).unwrap();
        std::fs::write(home.path().join("bin/codex"), "").unwrap();
        let path = [home.path().join("bin")];
        assert_eq!(Client::found(Some(home.path()), &path), [Client::Codex, Client::Windsurf]);
        assert_eq!(Client::found(None, &path), [Client::Codex]);
    }

    #[test]
    fn lines_carry_the_token() {
        let url = "http://127.0.0.1:4001/mcp";
        for client in Client::ALL {
            let line = client.line("toolgate", url, Some("tg_secret"));
            assert!(line.contains(url) && line.contains("Bearer tg_secret"), "{line}");
            let line = client.line("toolgate", url, None);
            assert!(line.contains(url) && !line.contains("Bearer"), "{line}");
        }
    }
}
