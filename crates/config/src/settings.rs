//! The sections of the file, one module each: their syntax (`Raw…`) and the validated settings.
//!
//! Every `Raw…` type is a `section!`: its doc comments become the schema and the reference page.
//! Its `lower` turns it into the validated public type and reports contradictions.
//! Start at [`RawConfig`].

pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod grants;
pub(crate) mod limits;
pub(crate) mod listen;
pub(crate) mod people;
pub(crate) mod policies;
pub(crate) mod servers;
pub(crate) mod sessions;
pub(crate) mod tools;

use crate::reader::{At, Named, section};
use crate::value::{Cidr, HostName, HttpOrigin, Period, Switch, Text, Whole};

section! {
    foreign = FOREIGN;
    /// The configuration file of toolgate, `toolgate.yaml`.
    ///
    /// Relative paths begin at the folder of the file. Keys beginning `x-` are ignored in every
    /// section. A key without a value is treated as absent.
    #[schemars(rename = "Config")]
    struct RawConfig {
        /// The version of this format: `1`.
        #[schemars(required, extend("const" = 1))]
        version: Whole,
        /// The data folder: audit, showcase, keys. Default: `$XDG_DATA_HOME/toolgate`.
        data: Text,
        /// Where toolgate listens.
        listen: listen::RawListen,
        /// Host names that clients may use, in addition to loopback names and addresses.
        hosts: Vec<HostName>,
        /// Browser origins that are accepted, in addition to loopback.
        origins: Vec<HttpOrigin>,
        /// Networks of the reverse proxies that terminate TLS in front of the admin listener. Off loopback, that listener accepts connections only from them.
        behind_proxy: Vec<Cidr>,
        /// Certificate and key. With them every listener accepts only TLS (`https`, `wss`).
        tls: listen::RawTls,
        /// Whether local mode (calls without a token on loopback) is allowed while no grant exists.
        #[schemars(extend("default" = "on"))]
        local: Switch,
        /// Time for running calls to finish when toolgate stops.
        #[schemars(extend("default" = "30s"))]
        shutdown_grace: Period,
        /// How long a list on `/mcp` waits for servers that are starting and were never listed.
        #[schemars(extend("default" = "5s"))]
        list_wait: Period,
        /// Limits on requests, responses and connections.
        limits: limits::RawLimits,
        /// MCP sessions of agents.
        agent_sessions: limits::RawAgentSessions,
        /// MCP servers by name. If bare tool names collide, the first server in the file owns the name.
        servers: Named<servers::ServerName, At<servers::RawServer>>,
        /// Policies by name: a file, or the document itself.
        policies: Named<policies::PolicyName, policies::RawPolicy>,
        /// Grants: tokens of agents, with the servers and sessions they may reach and their policy.
        grants: Vec<At<grants::RawGrant>>,
        /// Tokens of people for the CLI and the admin API.
        people: Vec<At<people::RawPerson>>,
        /// Programs that connect over WebSocket and publish tools.
        sessions: sessions::RawSessions,
        /// How people answer held calls.
        approvals: approvals::RawApprovals,
        /// The address in links to toolgate's pages, as people reach it. Default: the admin listener.
        public_url: Text,
        /// The audit log.
        audit: audit::RawAudit,
    }
}

/// Top-level keys of other programs.
const FOREIGN: &[(&str, &str)] = &[
    ("mcpServers", "did you mean `servers`? its entries are accepted as they are"),
    ("mcp_servers", "did you mean `servers`?"),
    ("context_servers", "did you mean `servers`?"),
    ("inputs", "write secrets as `env:NAME` or `file:PATH` where they are used"),
    ("port", "did you mean `listen: { mcp: 127.0.0.1:PORT }`?"),
    (
        "tokens",
        "tokens of agents are `grants:`, of people `people:`, of sessions `sessions: { tokens: [] }`",
    ),
    ("workPath", V8_PROJECT),
    ("mcp", V8_PROJECT),
    ("toolsCache", V8_PROJECT),
    ("tools_cache", V8_PROJECT),
];

const V8_PROJECT: &str =
    "this looks like v8project.yaml: read it with `toolgate import v8project.yaml`";
