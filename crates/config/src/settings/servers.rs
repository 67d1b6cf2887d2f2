//! `servers`: upstream MCP servers. An entry of a client's `mcpServers` is valid unchanged.

mod foreign;
mod http;
mod stdio;

use std::time::Duration;

pub use self::http::{Http, HttpFlavour, ServerUrl};
use self::stdio::IsShared;
pub use self::stdio::Stdio;
use super::tools::{RawTool, TIMEOUTS, ToolConfig, ToolName, lower_tools};
use crate::finding::Span;
use crate::problem::code;
use crate::reader::{At, KeyRule, Named, Reader, section};
use crate::syntax::Key;
use crate::value::{Period, Scalar, Switch, Text, Word, within, words};

/// An MCP server of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// Unique name.
    pub name: String,
    /// Its transport.
    pub transport: Transport,
    /// Deadline of calls.
    pub timeout: Duration,
    /// How long its start and handshake may take.
    pub start_timeout: Duration,
    /// How its tools are named on `/mcp`.
    pub names: Names,
    /// What happens when a tool's definition is new or changes.
    pub pin: Pin,
    /// Whether arguments are checked against the tool's schema.
    pub validate: bool,
    /// What happens to control and invisible characters in tool results.
    pub results: Results,
    /// The operator's settings for single tools.
    pub tools: Vec<ToolConfig>,
}

/// The transport of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// A child process.
    Stdio(Stdio),
    /// Streamable HTTP or legacy HTTP+SSE.
    Http(Http),
}

words! {
    /// How tools are named on `/mcp`.
    pub enum Names {
        /// `<server>__<tool>`.
        Prefixed = "prefixed",
        /// By the tool's own name.
        Bare = "bare",
    }
}

words! {
    /// What happens to control and invisible characters in tool results.
    pub enum Results {
        /// They pass.
        Pass = "pass",
        /// They are written as `\u{…}`.
        Escape = "escape",
        /// They are removed.
        Strip = "strip",
    }
}

words! {
    /// What happens when a tool's definition is new or changes.
    pub enum Pin {
        /// The first definition seen is approved; a changed one is quarantined.
        First = "first",
        /// Every definition waits for a person.
        Strict = "strict",
        /// Nothing is quarantined.
        Off = "off",
    }
}

words! {
    /// `type` of a client's entry.
    pub(crate) enum TransportWord {
        /// A child process.
        Stdio = "stdio",
        /// Streamable HTTP.
        Http = "http" | "streamable-http" | "streamableHttp",
        /// Legacy HTTP+SSE.
        Sse = "sse",
    }
}

section! {
    foreign = foreign::KEYS;
    /// An MCP server. An `mcpServers` entry of an MCP client works unchanged. Requires exactly one of `command` and `url`.
    ///
    /// In `args`, `env` and `cwd` of `instances: per-agent`, `{grant}` is replaced by the label of the grant, as a file name, and `{instance}` by an id that no other child has.
    ///
    /// In `command`, `args`, `env`, `url` and `headers`, `${NAME}`, `${NAME:-default}` and `${env:NAME}` are replaced; a whole value may be `env:NAME` or, except in `command` and `args`, `file:PATH`.
    #[schemars(rename = "Server", extend("oneOf" = [{"required": ["command"]}, {"required": ["url"]}]))]
    struct RawServer {
        /// Transport, as MCP clients write it; must match `command` or `url`.
        transport as "type": TransportWord,
        /// Program to start; the server uses stdio.
        command: Text,
        /// Arguments of the program.
        args: Vec<At<Scalar>>,
        /// Environment variables of the child process.
        env: Named<AnyName, At<Scalar>>,
        /// Working directory. Default: the folder of this file.
        cwd: Text,
        /// Address of a streamable HTTP or legacy SSE server; the query string is kept.
        url: Text,
        /// Headers of every request to the server. Secrets must be references.
        headers: Named<AnyName, At<Scalar>>,
        /// One child process per agent session, or one for all. Default: `per-agent`.
        instances: Word<IsShared>,
        /// Deadline of calls.
        #[schemars(extend("default" = "60s"))]
        timeout: Period,
        /// Time limit for start and handshake.
        #[schemars(extend("default" = "60s"))]
        start_timeout: Period,
        /// How its tools are named on `/mcp`: `prefixed` (`server__tool`) or `bare`.
        #[schemars(extend("default" = "prefixed"))]
        names: Names,
        /// Reaction to new and changed definitions of tools. `first`: the first definition of a tool is recorded, a changed one is quarantined (neither listed nor callable) until a person approves it. `strict`: every definition waits for a person. `off`: changes are only recorded in the audit. Hidden text is quarantined in any case.
        #[schemars(extend("default" = "first"))]
        pin: Pin,
        /// Check arguments against the tool's schema (JSON Schema 2020-12) before a call is sent.
        #[schemars(extend("default" = false))]
        validate: Switch,
        /// Control and invisible characters in tool results: `pass` them, `escape` them as `\u{…}`, or `strip` them.
        #[schemars(extend("default" = "pass"))]
        results: Results,
        /// Settings of single tools, by their own names.
        tools: Named<ToolName, RawTool>,
    }
}

/// Server names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerName;

const TAKEN: [&str; 3] = ["sessions", "session", "toolgate"];

impl KeyRule for ServerName {
    const PATTERN: &'static str = "^(?!(sessions|session|toolgate)$)[a-z0-9][a-z0-9-]{0,31}$";

    fn check(key: &Key, reader: &mut Reader<'_>) {
        let name = key.text.as_str();
        if TAKEN.contains(&name) {
            let message = format!("`{name}` is reserved");
            let hint = format!("choose another name: `{name}-server`");
            reader.error_hint(code::INVALID_NAME, key.span, message, hint);
        } else if !is_server_name(name) {
            let message = format!("`{name}` cannot be the name of a server");
            let fixed = fixed_name(name);
            let hint = if is_server_name(&fixed) {
                format!("did you mean `{fixed}`?")
            } else {
                "up to 32 lower-case letters, digits and `-`, not starting with `-`".to_owned()
            };
            reader.error_hint(code::INVALID_NAME, key.span, message, hint);
        }
    }
}

pub(crate) fn is_server_name(name: &str) -> bool {
    !TAKEN.contains(&name)
        && name.len() <= 32
        && !name.starts_with('-')
        && !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// `My Server_2` becomes `my-server-2`.
pub(crate) fn fixed_name(name: &str) -> String {
    let dashed = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    name.chars().map(dashed).collect::<String>().trim_matches('-').to_owned()
}

/// Keys that are checked where they are used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnyName;

impl KeyRule for AnyName {
    const PATTERN: &'static str = "^.+$";
    fn check(_: &Key, _: &mut Reader<'_>) {}
}

impl RawServer {
    pub(crate) fn lower(
        mut self,
        name: &At<String>,
        reader: &mut Reader<'_>,
    ) -> Option<ServerConfig> {
        let transport = self.lower_transport(name, reader);
        let start = (Period::millis(100), Period::secs(3600));
        let server = ServerConfig {
            name: name.value.clone(),
            timeout: within(self.timeout, TIMEOUTS, Period::secs(60), reader).0,
            start_timeout: within(self.start_timeout, start, Period::secs(60), reader).0,
            names: self.names.map_or(Names::Prefixed, |at| at.value),
            pin: self.pin.map_or(Pin::First, |at| at.value),
            validate: self.validate.is_some_and(|at| at.value.0),
            results: self.results.map_or(Results::Pass, |at| at.value),
            tools: lower_tools(self.tools, reader),
            transport: transport?,
        };
        Some(server)
    }

    fn lower_transport(&mut self, name: &At<String>, reader: &mut Reader<'_>) -> Option<Transport> {
        let word = self.transport.take();
        match (self.command.take(), self.url.take()) {
            (Some(_), Some(url)) => {
                let message = "`command` and `url` exclude each other";
                let hint =
                    "use `command` for a program to start, `url` for a server on the network";
                reader.error_hint(code::CONFLICT, url.span, message, hint);
                None
            }
            (Some(command), None) => {
                let fits = |word| word == TransportWord::Stdio;
                check_type(word, fits, "command", reader);
                refuse(self.headers.as_ref().map(|at| at.span), "headers", "url", reader);
                self.lower_stdio(&command, reader).map(Transport::Stdio)
            }
            (None, Some(url)) => {
                let flavour = word.as_ref().map(|at| at.value);
                check_type(word, |word| word != TransportWord::Stdio, "url", reader);
                self.refuse_stdio_keys(reader);
                self.lower_http(&url, flavour, reader).map(Transport::Http)
            }
            (None, None) => {
                let silent = ["command", "url"].iter().any(|key| self.unreadable.contains(key));
                if !silent {
                    let message =
                        format!("server `{}` has neither `command` nor `url`", name.value);
                    let hint = "add `command: PROGRAM` or `url: https://…`";
                    reader.error_hint(code::MISSING_KEY, name.span, message, hint);
                }
                None
            }
        }
    }

    fn refuse_stdio_keys(&self, reader: &mut Reader<'_>) {
        let keys = [
            ("args", self.args.as_ref().map(|at| at.span)),
            ("env", self.env.as_ref().map(|at| at.span)),
            ("cwd", self.cwd.as_ref().map(|at| at.span)),
            ("instances", self.instances.as_ref().map(|at| at.span)),
        ];
        for (key, span) in keys {
            refuse(span, key, "command", reader);
        }
    }
}

/// The part of a bad header or variable name that can be quoted: `API_KEY=value` is a common
/// mistake.
fn quotable(name: &str) -> &str {
    name.split(['=', ':', ' ']).next().unwrap_or_default()
}

fn refuse(span: Option<Span>, key: &str, needs: &str, reader: &mut Reader<'_>) {
    if let Some(span) = span {
        let message = format!("`{key}` requires `{needs}`");
        reader.error_hint(code::CONFLICT, span, message, format!("remove `{key}`"));
    }
}

fn check_type(
    word: Option<At<TransportWord>>,
    fits: impl Fn(TransportWord) -> bool,
    key: &str,
    reader: &mut Reader<'_>,
) {
    if let Some(At { value, span }) = word.filter(|word| !fits(word.value)) {
        let message = format!("type `{}` contradicts `{key}`", value.as_str());
        reader.error_hint(
            code::CONFLICT,
            span,
            message,
            format!("remove `type`: `{key}` implies it"),
        );
    }
}
