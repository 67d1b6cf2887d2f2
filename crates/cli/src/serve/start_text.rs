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
    pub(crate) door: &'a Door,
    pub(crate) clients: &'a [Client],
    /// Whether programs need a token to dial in.
    pub(crate) session_tokens: bool,
    /// The fingerprint of the key that signs the audit, if it was just made.
    pub(crate) new_key: Option<&'a str>,
}

/// Who may call, and what decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Door {
    /// Whoever is on this machine, under the built-in policy in shadow.
    Local,
    /// Whoever is on this machine, under a policy of the command line.
    LocalUnder(PathBuf),
    /// So many grants.
    Granted(usize),
    /// Nobody.
    Closed,
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

    /// What to paste; `token` is whether it needs one.
    fn line(self, server: &str, url: &str, token: bool) -> String {
        let header = "Bearer <token of a grant>";
        match self {
            Self::ClaudeCode => {
                let more = if token {
                    format!(" --header \"Authorization: {header}\"")
                } else {
                    String::new()
                };
                format!("Claude Code: claude mcp add --transport http {server} {url}{more}")
            }
            Self::Cursor => format!(
                "Cursor:      in ~/.cursor/mcp.json under \"mcpServers\": \
                 \"{server}\": {{\"url\": \"{url}\"{}}}",
                in_json(token, header)
            ),
            Self::VsCode => format!(
                "VS Code:     code --add-mcp '{{\"name\":\"{server}\",\"type\":\"http\",\
                 \"url\":\"{url}\"{}}}'",
                in_json(token, header)
            ),
        }
    }
}

fn in_json(token: bool, header: &str) -> String {
    if token {
        format!(", \"headers\": {{\"Authorization\": \"{header}\"}}")
    } else {
        String::new()
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
    if let Some(key) = start.new_key {
        line(format!("  audit key      {key}"));
        line("                 new; keep this line elsewhere: `toolgate audit verify --key` checks by it".to_owned());
    }
    line(String::new());
    if let Some(mcp) = start.mcp {
        paste(start, mcp, &mut line);
        line(String::new());
    }
    for words in start.door.words() {
        line(words);
    }
    if start.sessions.is_some() && !start.session_tokens {
        line(ANY_SESSION.to_owned());
    }
    line(OTHERS.to_owned());
    line(SAME_USER.to_owned());
    text
}

fn paste(start: &Start<'_>, mcp: &str, line: &mut dyn FnMut(String)) {
    if start.servers.is_empty() {
        line("No server is configured yet. Add one while toolgate runs, for example".to_owned());
        line(format!("  {FIRST_SERVER}"));
        line("or write it into toolgate.yaml.".to_owned());
        line(String::new());
    }
    line(format!("  all servers    {mcp}/mcp"));
    for server in start.servers {
        line(format!("  {server:<14} {mcp}/mcp/{server}"));
    }
    let clients: &[Client] = match start.clients {
        [] => &[Client::ClaudeCode],
        found => found,
    };
    line(String::new());
    line("To use it, paste:".to_owned());
    let token = matches!(start.door, Door::Granted(_) | Door::Closed);
    for client in clients {
        line(format!("  {}", client.line("toolgate", &format!("{mcp}/mcp"), token)));
    }
}

const FIRST_SERVER: &str =
    "toolgate server add everything -- npx -y @modelcontextprotocol/server-everything";

impl Door {
    fn words(&self) -> Vec<String> {
        let everybody =
            "Open: every user and every program of this machine may call these servers;";
        let end =
            "To end that, make a grant: `toolgate grant create`, or `grants` in toolgate.yaml.";
        match self {
            Self::Local => vec![
                everybody.to_owned(),
                "everything passes and is written down with what the built-in policy `recommended` \
                 would have said."
                    .to_owned(),
                end.to_owned(),
            ],
            Self::LocalUnder(policy) => vec![
                everybody.to_owned(),
                format!("the policy {} decides, and everything is written down.", policy.display()),
                end.to_owned(),
            ],
            Self::Granted(count) => {
                let whom = match count {
                    1 => "to the token of one grant, under its policy".to_owned(),
                    count => format!("to the tokens of {count} grants, each under its policy"),
                };
                vec![format!("Open: {whom}. Denied: calls without a token.")]
            }
            Self::Closed => vec![
                "Denied: every call. `local` is off and there are no grants; make one with \
                 `toolgate grant create`, or configure `grants` in toolgate.yaml."
                    .to_owned(),
            ],
        }
    }
}

/// What programs without tokens mean.
const ANY_SESSION: &str = "Open: any program of this machine may publish tools as a session, and take over a live session.\nTo end that, make a token for your programs: `toolgate session token`.";

const OTHERS: &str = "Denied: other machines, unless a listener says otherwise, and pages of browsers from elsewhere.";

/// What toolgate cannot do.
const SAME_USER: &str = "Whoever can read the admin token can change all of this, an agent that runs as your own user too:\nthen toolgate guards against mistakes, not against an attack. Run it as a user of its own.";
