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
mod problem;
mod reader;
mod schema;
mod secret_name;
mod settings;
mod source;
mod suggest;
mod surroundings;
mod tree;
mod v8project;
mod value;

pub use config::{Config, Imported, Loaded};
pub use data_of::data_of;
pub use problem::{CODES, Problem, Severity, Snippet, render};
pub use schema::schema;
pub use settings::audit::{AuditArguments, AuditConfig, Durability};
pub use settings::grants::{GrantConfig, SessionFilter};
pub use settings::limits::{AgentSessions, Limits};
pub use settings::listen::{Listen, Tls};
pub use settings::people::{PersonConfig, Role};
pub use settings::policies::{PolicyConfig, PolicySource};
pub use settings::servers::{
    Http, HttpFlavour, Instances, Names, ServerConfig, ServerUrl, Stdio, Transport,
};
pub use settings::sessions::{Idle, KindSettings, SchemaConflict, SessionToken, SessionsConfig};
pub use settings::tools::{RiskClass, ToolConfig};
pub use surroundings::{Surroundings, TlsFault};
pub use value::{Cidr, Expanded, Glob, HttpOrigin, Secret, Syslog, TokenHash};
