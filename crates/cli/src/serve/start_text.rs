//! The text that `serve` prints when it is ready: addresses, lines to paste, who may call.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::clients::{COMMON, Client};

/// The facts of the start text.
pub(crate) struct Start<'a> {
    pub(crate) mcp: Option<&'a str>,
    pub(crate) sessions: Option<&'a str>,
    pub(crate) admin: Option<&'a str>,
    pub(crate) admin_token: &'a Path,
    pub(crate) config: Option<&'a Path>,
    pub(crate) servers: &'a [String],
    pub(crate) access: &'a AccessMode,
    pub(crate) clients: &'a [Client],
    /// Whether sessions need a token.
    pub(crate) session_tokens: bool,
    /// The fingerprint of the key that signs the audit, if it is new.
    pub(crate) new_key: Option<&'a str>,
}

/// Who may call, and which policy decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AccessMode {
    /// Every program on this machine; the built-in policy in shadow mode.
    Local,
    /// Every program on this machine; the policy of the command line.
    LocalUnder(PathBuf),
    /// This many grants.
    Granted(usize),
    /// No caller.
    Closed,
}

/// The whole text.
pub(crate) fn text(start: &Start<'_>) -> String {
    let mut text = String::from("toolgate is up\n");
    let mut line = |content: String| {
        // Writing to a String cannot fail.
        let _infallible = writeln!(text, "{content}");
    };
    let off = "off";
    line(format!("  agents (MCP)   {}", start.mcp.unwrap_or(off)));
    line(format!("  sessions       {}", start.sessions.unwrap_or(off)));
    line(format!("  admin          {}", start.admin.unwrap_or(off)));
    line(format!("  admin token    in the file {}", start.admin_token.display()));
    match start.config {
        Some(file) => line(format!("  configuration  {}", file.display())),
        None => line("  configuration  none (defaults apply)".to_owned()),
    }
    if let Some(key) = start.new_key {
        line(format!("  audit key      {key}"));
        line(
            "                 new; keep it outside this machine, for `toolgate audit verify --key`"
                .to_owned(),
        );
    }
    line(String::new());
    if let Some(mcp) = start.mcp {
        paste(start, mcp, &mut line);
        line(String::new());
    }
    for sentence in start.access.sentences() {
        line(sentence);
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
        line("No servers yet. Add one while toolgate runs, for example".to_owned());
        line(format!("  {FIRST_SERVER}"));
        line("or add it to toolgate.yaml.".to_owned());
        line(String::new());
    }
    line(format!("  all servers    {mcp}/mcp"));
    for server in start.servers {
        line(format!("  {server:<14} {mcp}/mcp/{server}"));
    }
    let clients = if start.clients.is_empty() { COMMON } else { start.clients };
    line(String::new());
    line("To connect a client, paste:".to_owned());
    let needs_token = matches!(start.access, AccessMode::Granted(_) | AccessMode::Closed);
    let token = needs_token.then_some("<token of a grant>");
    for client in clients {
        line(format!("  {}", client.line("toolgate", &format!("{mcp}/mcp"), token)));
    }
}

const FIRST_SERVER: &str =
    "toolgate server add everything -- npx -y @modelcontextprotocol/server-everything";

impl AccessMode {
    fn sentences(&self) -> Vec<String> {
        let open = "Open (local mode): every user and program on this machine may call any tool.";
        let end = "To end local mode, create a grant: `toolgate grant create`, or `grants` in toolgate.yaml.";
        match self {
            Self::Local => vec![
                open.to_owned(),
                "Nothing is blocked; the audit records what the built-in policy `recommended` \
                 would have decided."
                    .to_owned(),
                end.to_owned(),
            ],
            Self::LocalUnder(policy) => vec![
                open.to_owned(),
                format!("The policy {} decides each call; the audit records it.", policy.display()),
                end.to_owned(),
            ],
            Self::Granted(count) => {
                let who = match count {
                    1 => "agents with the token of the one grant, under its policy".to_owned(),
                    count => {
                        format!("agents with the token of one of {count} grants, under its policy")
                    }
                };
                vec![format!("Open: {who}. Denied: calls without a token.")]
            }
            Self::Closed => vec![
                "Denied: every call. Local mode is off and there are no grants; create one with \
                 `toolgate grant create`, or under `grants` in toolgate.yaml."
                    .to_owned(),
            ],
        }
    }
}

/// The consequence of sessions without tokens.
const ANY_SESSION: &str = "Open: any program on this machine may publish tools as a session, or take over a live session.\nTo end that, create a token for your programs: `toolgate session token`.";

const OTHERS: &str = "Denied: connections from other machines (unless configured), and web pages from other origins.";

/// The known limit of approvals and of every setting.
const SAME_USER: &str = "Anyone who can read the admin token can change these settings, including an agent that runs under your account:\nthen toolgate guards against mistakes, not against a malicious agent. To withstand one, run toolgate as a separate OS user.";
