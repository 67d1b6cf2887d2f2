//! The session that is missing when no connected one serves a tool, and where it last ran.
//!
//! Invariant: it describes a session that the caller's grant may reach; its creator has selected it.

use serde_json::{Map, Value};

use crate::time::Millis;

/// The session that last served a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingSession {
    /// The name that was called.
    pub tool: String,
    /// Its kind.
    pub kind: String,
    /// Its configuration.
    pub config_id: String,
    /// Its infobase; `None` if the tool was imported.
    pub infobase_name: Option<String>,
    /// The machine it ran on; `None` if the tool was imported.
    pub host_id: Option<String>,
    /// When it was last connected.
    pub last_seen: Millis,
}

impl MissingSession {
    pub(super) fn text(&self) -> String {
        let Self { tool, kind, config_id, .. } = self;
        let infobase = self.infobase_name.as_ref().map(|name| format!(" with infobase `{name}`"));
        let host = self.known_host().map(|host| format!(" on host `{host}`"));
        format!(
            "No session serves `{tool}` now: one of kind `{kind}` (configuration `{config_id}`) must connect first. It was last seen{}{} at {}. Nothing was sent. Ask for it to be started, then try again.",
            infobase.unwrap_or_default(),
            host.unwrap_or_default(),
            self.last_seen.rfc3339(),
        )
    }

    pub(super) fn add_to(&self, meta: &mut Map<String, Value>) {
        let fields = [
            ("tool", Value::from(self.tool.as_str())),
            ("kind", self.kind.as_str().into()),
            ("config_id", self.config_id.as_str().into()),
            ("infobase_name", self.infobase_name.as_deref().into()),
            ("host_id", self.host_id.as_deref().into()),
            ("last_seen", self.last_seen.rfc3339().into()),
        ];
        meta.extend(fields.map(|(key, value)| (key.to_owned(), value)));
    }

    /// The host, unless the session did not send it.
    fn known_host(&self) -> Option<&str> {
        self.host_id.as_deref().filter(|host| *host != UNKNOWN_HOST)
    }
}

/// The `host_id` of sessions that do not send one.
const UNKNOWN_HOST: &str = "unknown";
