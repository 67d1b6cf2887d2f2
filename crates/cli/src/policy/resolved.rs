//! Which tool a name means: for a running gateway, or for a data folder from which none serves.
//!
//! Invariant: a name is resolved as for a call on `/mcp`; see `toolgate_gateway`'s `resolve.rs`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use http::Method;
use serde_json::{Value, json};
use toolgate_config::{Config, Names};
use toolgate_control::session_settings::configured_class;
use toolgate_control::{FileState, SERVERS, offline};
use toolgate_gateway::{LISTS, Records, built_in_class, stored_tools};
use toolgate_policy::{Class, similar};
use toolgate_session::Reach;
use toolgate_store::{Document, Snapshot};
use toolgate_store_sqlite::ReadOnlyStore;

use crate::admin_client::AdminClient;
use crate::config_source::Source;

/// The word for sessions where servers have their name.
const SESSIONS: &str = "sessions";
/// The server name of built-ins.
const TOOLGATE: &str = "toolgate";
/// How many similar names are suggested.
const SUGGESTIONS: usize = 3;

/// The tool that a name means.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    /// Empty if the name belongs to no server.
    pub(super) server: String,
    pub(super) tool: String,
    /// No tool of this name can be called; these names are similar.
    pub(super) unknown: Option<Vec<String>>,
}

/// The same with what a policy decides by.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) resolved: Resolved,
    pub(super) class: Class,
    /// Other names of the tool, which policies match too.
    pub(super) aliases: Vec<Arc<str>>,
}

/// What a grant can reach; the default is everything.
#[derive(Default)]
pub(super) struct Reached<'a> {
    pub(super) servers: Option<&'a [String]>,
    pub(super) sessions: Reach,
}

/// A data folder from which no gateway serves, and the configuration.
pub(super) struct Folder {
    pub(super) file: FileState,
    pub(super) snapshot: Snapshot,
    /// The names of all servers.
    pub(super) servers: Vec<String>,
    /// The tools that servers had when they were last listed.
    listed: BTreeMap<String, Vec<(String, Class)>>,
    showcase: Vec<Document>,
    pub(super) store: Option<ReadOnlyStore>,
}

// === impl Resolved ===

impl Resolved {
    /// From an answer of the gateway.
    pub(super) fn read(answer: &Value) -> Self {
        let text = |of: Option<&Value>| of.and_then(Value::as_str).unwrap_or_default().to_owned();
        let resolved = answer.get("resolved");
        let part = |name: &str| text(resolved.and_then(|of| of.get(name)));
        let suggestions = answer.get("suggestions").and_then(Value::as_array);
        let names = suggestions.map(|list| list.iter().map(|one| text(Some(one))).collect());
        Self { server: part("server"), tool: part("tool"), unknown: names }
    }
}

// === impl Found ===

impl Found {
    /// Asks a running gateway; returns the names of its servers too.
    pub(super) fn of_gateway(
        client: &AdminClient,
        server: Option<&str>,
        tool: &str,
    ) -> anyhow::Result<(Self, Vec<String>)> {
        let question = json!({"server": server, "tool": tool}).to_string();
        // Names do not depend on the policy.
        let path = "/api/v1/policies/recommended/explain";
        let answer = client.send_text(&Method::POST, path, question)?;
        let texts = |list: Option<&Value>| -> Vec<String> {
            let list = list.and_then(Value::as_array).into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let class = answer.get("class").and_then(Value::as_str).and_then(Class::parse);
        let aliases = texts(answer.pointer("/resolved/aliases")).into_iter().map(Into::into);
        let found = Self {
            resolved: Resolved::read(&answer),
            class: class.context("the gateway answered without a risk class")?,
            aliases: aliases.collect(),
        };
        Ok((found, texts(client.get("/api/v1/known_tools")?.get("servers"))))
    }
}

// === impl Folder ===

impl Folder {
    pub(super) fn read(path: &Path, config: Option<&Path>) -> anyhow::Result<Self> {
        let unreadable = || format!("the data folder `{}` cannot be read", path.display());
        let mut store = ReadOnlyStore::open(path).with_context(unreadable)?;
        let mut snapshot = Snapshot::default();
        let (mut kept, mut showcase, mut lists) = (Vec::new(), Vec::new(), Vec::new());
        if let Some(store) = &mut store {
            snapshot = store.snapshot().with_context(unreadable)?;
            kept = store.documents(SERVERS).with_context(unreadable)?;
            showcase = store.documents(Records::SPACE).with_context(unreadable)?;
            lists = store.documents(LISTS).with_context(unreadable)?;
        }
        let file = Source::find(config).file_state()?;
        let servers = file.config.servers.iter().map(|server| server.name.clone());
        let servers = servers.chain(kept.iter().map(|kept| kept.key.to_string())).collect();
        let listed =
            lists.iter().filter_map(|it| Some((it.key.to_string(), stored_tools(&it.json)?)));
        Ok(Self { listed: listed.collect(), file, snapshot, servers, showcase, store })
    }

    /// The tool that a name means.
    pub(super) fn find(&self, server: Option<&str>, tool: &str, reached: &Reached<'_>) -> Found {
        let config = &self.file.config;
        let of_sessions = server == Some(SESSIONS);
        let session_tool = (of_sessions || server.is_none()).then(|| {
            let named = (tool, of_sessions);
            offline::session_tool((config, &self.servers), &self.showcase, &reached.sessions, named)
        });
        if let Some((known, class)) = session_tool.flatten() {
            let resolved = of(SESSIONS, &known.original);
            return Found { resolved, class, aliases: known.aliases.to_vec() };
        }
        let resolved = self.resolve(server, tool, reached);
        let class = self.class(&resolved);
        Found { resolved, class, aliases: Vec::new() }
    }

    fn resolve(&self, server: Option<&str>, tool: &str, reached: &Reached<'_>) -> Resolved {
        let is_built_in = built_in_class(tool).is_some();
        if is_built_in && server.is_none_or(|server| server == TOOLGATE) {
            return of(TOOLGATE, tool);
        }
        let Some(server) = server else { return self.resolve_shown(tool, reached) };
        let named = of(server, tool);
        if self.has(server, tool, reached) {
            return named;
        }
        self.unknown(Some(server), tool, reached, named)
    }

    /// The tool of a server by its name on `/mcp`. A name with the prefix of a server that was never
    /// listed is taken as one of its tools.
    fn resolve_shown(&self, tool: &str, reached: &Reached<'_>) -> Resolved {
        let config = &self.file.config;
        let prefixed = tool
            .split_once("__")
            .filter(|(server, _)| !is_bare(config, server) && self.reaches(server, reached));
        if let Some((server, own)) = prefixed {
            let named = of(server, own);
            let has = self.has(server, own, reached);
            return if has { named } else { self.unknown(None, tool, reached, named) };
        }
        let bare = || self.reached(reached).filter(|one| is_bare(config, one));
        let lists = |server: &&String| {
            let mut listed = self.listed.get(*server).into_iter().flatten();
            listed.any(|(name, _)| name == tool)
        };
        match bare().find(lists) {
            Some(server) => of(server, tool),
            // Which tools a bare server has that was never listed is not known.
            None if bare().any(|server| !self.listed.contains_key(server)) => of("", tool),
            None => self.unknown(None, tool, reached, of("", tool)),
        }
    }

    fn unknown(
        &self,
        server: Option<&str>,
        tool: &str,
        reached: &Reached<'_>,
        of: Resolved,
    ) -> Resolved {
        let config = &self.file.config;
        let mut names = Vec::new();
        for one in self.reached(reached).filter(|one| server.is_none_or(|server| server == *one)) {
            let tools = self.listed.get(one).into_iter().flatten();
            names.extend(tools.map(|(own, _)| {
                let shown_bare = server.is_some() || is_bare(config, one);
                if shown_bare { own.clone() } else { format!("{one}__{own}") }
            }));
        }
        let similar = similar(tool, names.iter().map(String::as_str), SUGGESTIONS);
        Resolved { unknown: Some(similar.into_iter().map(str::to_owned).collect()), ..of }
    }

    /// The class that the operator has set, else that of the definition, else that of the name.
    fn class(&self, Resolved { server, tool, .. }: &Resolved) -> Class {
        let configured = self.file.config.servers.iter().find(|one| one.name == *server);
        let set = configured.and_then(|one| configured_class(one, tool));
        let mut listed = self.listed.get(server).into_iter().flatten();
        let listed = listed.find(|(own, _)| own == tool).map(|(_, class)| *class);
        let built_in = built_in_class(tool).filter(|_| server == TOOLGATE);
        set.or(listed).or(built_in).unwrap_or_else(|| Class::by_name(tool))
    }

    /// Whether a server in reach has the tool, as far as is known.
    fn has(&self, server: &str, tool: &str, reached: &Reached<'_>) -> bool {
        let listed = self.listed.get(server);
        self.reaches(server, reached)
            && listed.is_none_or(|tools| tools.iter().any(|(own, _)| own == tool))
    }

    fn reaches(&self, server: &str, reached: &Reached<'_>) -> bool {
        self.reached(reached).any(|one| one == server)
    }

    fn reached(&self, reached: &Reached<'_>) -> impl Iterator<Item = &String> {
        let granted = reached.servers;
        self.servers.iter().filter(move |one| granted.is_none_or(|granted| granted.contains(one)))
    }
}

fn of(server: &str, tool: &str) -> Resolved {
    Resolved { server: server.to_owned(), tool: tool.to_owned(), unknown: None }
}

fn is_bare(config: &Config, server: &str) -> bool {
    let configured = config.servers.iter().find(|one| one.name == server);
    configured.is_some_and(|one| one.names == Names::Bare)
}
