//! The configuration as a whole: from bytes to validated settings.
//!
//! Order: decode, tree, typed sections, then references between sections. Every step collects its
//! problems; only a file without a tree ends the reading early.
//! Start at [`Config::parse`].

mod unique;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolgate_policy::Severity;
use toolgate_session::Reach;

use crate::finding::{Finding, Span};
use crate::mask;
use crate::mcp_servers;
use crate::problem::{Problem, code};
use crate::reader::{At, Read as _, Reader};
use crate::settings::RawConfig;
use crate::settings::approvals::ApprovalsConfig;
use crate::settings::audit::AuditConfig;
use crate::settings::grants::{GrantConfig, Known};
use crate::settings::limits::{AgentSessionsConfig, Limits};
use crate::settings::listen::{Listen, Tls};
use crate::settings::people::PersonConfig;
use crate::settings::policies::{PolicyConfig, PolicySource};
use crate::settings::servers::ServerConfig;
use crate::settings::sessions::SessionsConfig;
use crate::source::{Source, decode};
use crate::surroundings::Surroundings;
use crate::syntax::{self, Kind, Node};
use crate::v8project::{self, DropIn};
use crate::value::{Cidr, HttpOrigin, Period, Text, within};

/// All settings of `toolgate.yaml`, validated and with defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The data folder, if the file names one.
    pub data: Option<PathBuf>,
    /// Where toolgate listens.
    pub listen: Listen,
    /// Host names by which clients reach the listeners, lower-case.
    pub hosts: Vec<String>,
    /// Accepted browser origins.
    pub origins: Vec<HttpOrigin>,
    /// Networks of reverse proxies.
    pub behind_proxy: Vec<Cidr>,
    /// Certificate and key.
    pub tls: Option<Tls>,
    /// Whether local mode is allowed.
    pub local: bool,
    /// How long running calls may take to finish at a stop.
    pub shutdown_grace: Duration,
    /// How long a list waits for servers that are starting and were never listed.
    pub list_wait: Duration,
    /// Limits on requests, responses and connections.
    pub limits: Limits,
    /// Limits of agent sessions.
    pub agent_sessions: AgentSessionsConfig,
    /// MCP servers, in the order of the file.
    pub servers: Vec<ServerConfig>,
    /// Policies, in the order of the file.
    pub policies: Vec<PolicyConfig>,
    /// Grants, in the order of the file.
    pub grants: Vec<GrantConfig>,
    /// People, in the order of the file.
    pub people: Vec<PersonConfig>,
    /// The reverse WebSocket.
    pub sessions: SessionsConfig,
    /// How people answer held calls.
    pub approvals: ApprovalsConfig,
    /// The address in links to toolgate's pages.
    pub public_url: Option<String>,
    /// The audit log.
    pub audit: AuditConfig,
}

/// A usable configuration, and its warnings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Problems of severity warning, in the order of the file.
    pub warnings: Vec<Problem>,
    /// The listeners that the file names, each with a problem at its position that has no message
    /// yet. Whether a listener is exposed also depends on the store.
    pub listeners: Vec<(&'static str, Problem)>,
}

/// The result of importing another program's configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The text of a `toolgate.yaml`; its paths are relative to the folder of the imported file.
    pub text: String,
    /// The tools cache that belongs to it.
    pub cache_file: Option<PathBuf>,
    /// The configuration that the text describes.
    pub loaded: Loaded,
}

impl Config {
    /// Reads, decodes and parses `file`.
    pub fn load(file: &Path, surroundings: &dyn Surroundings) -> Result<Loaded, Vec<Problem>> {
        let bytes = surroundings.read(file).map_err(|error| vec![unreadable(file, &error)])?;
        let source = decode(file.to_owned(), &bytes).map_err(|problem| vec![*problem])?;
        parse(source, surroundings)
    }

    /// Translates a configuration of an MCP client (`mcpServers`) or of v8-session-manager into a
    /// `toolgate.yaml`.
    pub fn import(file: &Path, surroundings: &dyn Surroundings) -> Result<Imported, Vec<Problem>> {
        let bytes = surroundings.read(file).map_err(|error| {
            let hint = unreadable(file, &error).hint.map(|_| "check the path".to_owned());
            vec![Problem { hint, ..unreadable(file, &error) }]
        })?;
        let source = decode(file.to_owned(), &bytes).map_err(|problem| vec![*problem])?;
        let mut imported = None;
        let loaded = parse_with(source, surroundings, |root, reader| {
            if mcp_servers::is_one(root) {
                let translated = mcp_servers::translate(root, reader);
                let config = RawConfig::read(&translated, reader).map(|raw| lower(raw, reader));
                imported = Some((mcp_servers::write(&translated), None));
                return config;
            }
            if !v8project::is_one(root) {
                let message = "this is neither a configuration of an MCP client (`mcpServers`) nor of v8-session-manager";
                let hint = "name a .mcp.json, a v8project.yaml, or a tools_cache.json";
                reader.error_hint(code::INVALID_VALUE, root.span, message, hint);
                return None;
            }
            let (config, translated, rest) = read_drop_in(root, reader);
            imported = Some((rest.write(&translated), rest.cache_file().map(Path::to_owned)));
            config
        })?;
        let (text, cache_file) = imported.unwrap_or_default();
        Ok(Imported { text, cache_file, loaded })
    }

    /// Parses the text of `file`; relative paths start at its folder. On failure every problem is
    /// returned, warnings too, in the order of the file (at most 200 of each).
    pub fn parse(
        text: &str,
        file: &Path,
        surroundings: &dyn Surroundings,
    ) -> Result<Loaded, Vec<Problem>> {
        let source = decode(file.to_owned(), text.as_bytes()).map_err(|problem| vec![*problem])?;
        parse(source, surroundings)
    }
}

/// The configuration without a file: all defaults.
impl Default for Config {
    fn default() -> Self {
        let mut reader = Reader {
            findings: Vec::new(),
            text: "",
            folder: PathBuf::from("."),
            surroundings: &Nothing,
            listeners: Vec::new(),
        };
        lower(RawConfig::default(), &mut reader)
    }
}

struct Nothing;

impl Surroundings for Nothing {
    fn env(&self, _: &str) -> Option<String> {
        None
    }
    fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

fn parse(source: Source, surroundings: &dyn Surroundings) -> Result<Loaded, Vec<Problem>> {
    parse_with(source, surroundings, read_root)
}

fn parse_with(
    mut source: Source,
    surroundings: &dyn Surroundings,
    read: impl FnOnce(&Node, &mut Reader<'_>) -> Option<Config>,
) -> Result<Loaded, Vec<Problem>> {
    let mut findings = Vec::new();
    let root = syntax::parse(&source, &mut findings);
    let (mut config, mut listeners_at) = (None, Vec::new());
    if let Some(root) = root {
        source.mask(mask::sensitive(&root));
        let folder = source.file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).to_owned();
        let listeners = Vec::new();
        let mut reader = Reader { findings, text: &source.text, folder, surroundings, listeners };
        config = read(&root, &mut reader);
        (findings, listeners_at) = (reader.findings, reader.listeners);
    }
    let warnings: Vec<_> =
        ordered(findings).into_iter().map(|finding| source.problem(finding)).collect();
    let failed = warnings.iter().any(|problem| problem.severity == Severity::Error);
    let Some(config) = config.filter(|_| !failed) else { return Err(warnings) };
    let exposed = |span| {
        let (severity, code) = (Severity::Error, code::EXPOSED);
        source.problem(Finding { severity, code, span, message: String::new(), hint: None })
    };
    let listeners = listeners_at.into_iter().map(|(name, span)| (name, exposed(span))).collect();
    Ok(Loaded { config, warnings, listeners })
}

fn ordered(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by_key(|finding| (finding.span.line, finding.span.column));
    findings
}

fn read_root(root: &Node, reader: &mut Reader<'_>) -> Option<Config> {
    if v8project::is_one(root) {
        return read_drop_in(root, reader).0;
    }
    let raw = match root.kind {
        Kind::Null => RawConfig::default(),
        _ => RawConfig::read(root, reader)?,
    };
    check_version(&raw, root.span, reader);
    Some(lower(raw, reader))
}

/// A configuration of v8-session-manager: its settings, the same as a `toolgate.yaml`, and those
/// without a key there.
fn read_drop_in(root: &Node, reader: &mut Reader<'_>) -> (Option<Config>, Node, DropIn) {
    let (translated, rest) = DropIn::translate(root, reader);
    let raw = RawConfig::read(&translated, reader);
    let config = raw.map(|raw| {
        let mut config = lower(raw, reader);
        add_rest(&rest, &mut config);
        config
    });
    (config, translated, rest)
}

/// Adds the settings for which `toolgate.yaml` has no key.
fn add_rest(rest: &DropIn, config: &mut Config) {
    config.sessions.cache_file.clone_from(&rest.cache_file);
    if let Some(token) = rest.token {
        let document = "version: '1'\ndefault: allow\n".to_owned();
        config.policies.push(PolicyConfig {
            name: v8project::POLICY.to_owned(),
            source: PolicySource::Inline(document),
        });
        config.grants.push(GrantConfig {
            label: v8project::GRANT.to_owned(),
            token,
            identity: None,
            groups: Vec::new(),
            servers: None,
            sessions: Reach::default(),
            policy: Some(v8project::POLICY.to_owned()),
            expires: None,
        });
    }
}

fn check_version(raw: &RawConfig, span: Span, reader: &mut Reader<'_>) {
    match &raw.version {
        Some(version) if version.value.0 != 1 => {
            let message = format!("version {} of this format is not supported", version.value.0);
            reader.error_hint(code::INVALID_VALUE, version.span, message, "write `version: 1`");
        }
        Some(_) => {}
        None if raw.unreadable.contains(&"version") => {}
        None => {
            let span = Span { end: span.start, ..span };
            let hint = "start the file with `version: 1`";
            reader.error_hint(code::MISSING_KEY, span, "`version` is missing", hint);
        }
    }
}

/// Sections with problems are incomplete; the problems prevent their use.
fn lower(raw: RawConfig, reader: &mut Reader<'_>) -> Config {
    let grace = (Period::secs(0), Period::secs(3600));
    let list_wait = (Period::secs(0), Period::secs(60));
    let entries = value(raw.servers).entries;
    let names: Vec<_> = entries.iter().map(|(name, _)| name.value.clone()).collect();
    let (sessions, session_tokens) = value(raw.sessions).lower(&names, reader);
    let servers = entries.into_iter().filter_map(|(name, raw)| raw.value.lower(&name, reader));
    let servers = servers.collect();
    let policies: Vec<_> = value(raw.policies)
        .entries
        .into_iter()
        .map(|(name, raw)| PolicyConfig { name: name.value, source: raw.0 })
        .collect();
    let known = Known {
        servers: names.iter().map(String::as_str).collect(),
        // The built-in policy is always defined.
        policies: policies
            .iter()
            .map(|policy| policy.name.as_str())
            .chain(["recommended"])
            .collect(),
    };
    let grants = value(raw.grants).into_iter();
    let grants: Vec<_> =
        grants.filter_map(|raw| raw.value.lower(raw.span, &known, reader)).collect();
    let people = value(raw.people).into_iter();
    let people: Vec<_> = people.filter_map(|raw| raw.value.lower(raw.span, reader)).collect();
    unique::check_unique(&grants, &people, session_tokens, reader);
    reader.listeners = raw.listen.as_ref().map(|at| at.value.places()).unwrap_or_default();
    Config {
        data: raw.data.map(|at| reader.path(at.value.0)),
        listen: value(raw.listen).lower(reader),
        hosts: value(raw.hosts).into_iter().map(|host| host.0).collect(),
        origins: value(raw.origins),
        behind_proxy: value(raw.behind_proxy),
        tls: raw.tls.and_then(|at| at.value.lower(at.span, reader)),
        local: raw.local.is_none_or(|at| at.value.0),
        shutdown_grace: within(raw.shutdown_grace, grace, Period::secs(30), reader).0,
        list_wait: within(raw.list_wait, list_wait, Period::secs(5), reader).0,
        limits: value(raw.limits).lower(reader),
        agent_sessions: value(raw.agent_sessions).lower(reader),
        servers,
        policies,
        grants: grants.into_iter().map(|grant| grant.value).collect(),
        people: people.into_iter().map(|person| person.value).collect(),
        sessions,
        approvals: value(raw.approvals).lower(reader),
        public_url: raw.public_url.and_then(|at| public_url(&at, reader)),
        audit: value(raw.audit).lower(reader),
    }
}

/// An address in links, without a slash at its end.
fn public_url(at: &At<Text>, reader: &mut Reader<'_>) -> Option<String> {
    let url = at.value.0.trim_end_matches('/');
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    if rest.is_none_or(|rest| rest.is_empty() || rest.contains(['?', '#', ' ', '@'])) {
        let message = format!("`{url}` is not the address of a web page");
        let hint = "write `https://HOST` or `https://HOST/PATH`";
        reader.error_hint(code::INVALID_VALUE, at.span, message, hint);
        return None;
    }
    Some(url.to_owned())
}

fn value<T: Default>(section: Option<At<T>>) -> T {
    section.map(|at| at.value).unwrap_or_default()
}

fn unreadable(file: &Path, error: &io::Error) -> Problem {
    Problem {
        code: code::UNREADABLE,
        severity: Severity::Error,
        file: file.to_owned(),
        line: 0,
        column: 0,
        message: match error.kind() {
            io::ErrorKind::NotFound => "no such file".to_owned(),
            kind => match error.get_ref() {
                // The reader's own explanation is better than the system's.
                Some(why) => format!("the file is rejected: {why}"),
                None => format!("cannot read the file: {kind}"),
            },
        },
        hint: (error.get_ref().is_none())
            .then(|| "check the path given with `--config` or `TOOLGATE_CONFIG`".to_owned()),
        snippet: None,
    }
}
