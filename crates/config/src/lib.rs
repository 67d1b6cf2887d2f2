//! The configuration of toolgate: reads `toolgate.yaml` strictly, reports every problem in one run,
//! and lowers it to validated settings.
//!
//! Invariant: files and variables are read only through [`Surroundings`]; nothing here opens a
//! socket.
//! Invariant: no `Debug`, `Display` or [`Problem`] shows a secret.
//! Start at [`Config::load`]; sections are under `settings/`, kinds of values under `value/`.
//! Tested by `tests/valid`, `tests/invalid` (with golden output) and every file under `examples/`.

mod config;
mod data_of;
mod finding;
mod mask;
mod mcp_servers;
mod problem;
mod reader;
mod role;
mod schema;
mod secret_name;
mod settings;
mod source;
mod suggest;
mod surroundings;
mod syntax;
mod v8project;
mod value;

pub use config::{Config, Imported, Loaded};
pub use data_of::data_of;
pub use mcp_servers::names_in_toolgate;
pub use problem::{CODES, Problem, Snippet, render};
pub use role::Role;
pub use schema::schema;
pub use secret_name::secret_name;
pub use settings::approvals::{ApprovalsConfig, NoticeFormat, WebhookConfig};
pub use settings::audit::AuditConfig;
pub use settings::grants::GrantConfig;
pub use settings::limits::{AgentSessionsConfig, Limits};
pub use settings::listen::{Listen, Tls};
pub use settings::people::PersonConfig;
pub use settings::policies::{PolicyConfig, PolicySource};
pub use settings::servers::{
    Http, HttpFlavour, Names, Pin, Results, ServerConfig, ServerUrl, Stdio, Transport,
};
pub use settings::sessions::{SessionToken, SessionsConfig};
pub use settings::tools::ToolConfig;
pub use source::not_utf8;
pub use surroundings::{Surroundings, TlsFault};
pub use value::{Cidr, Expanded, HttpOrigin, Secret, Syslog, TokenHash};
