//! Pins as the store keeps them.
//!
//! What toolgate records itself is in the space [`SPACE`]: the document of a server states that it
//! was listed, the document of a tool its first definition. What people approved is in the space
//! [`APPROVED`], whose changes carry an audit row and make a new generation.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::Deserialize;
use serde_json::json;
use toolgate_audit::Hash;

use super::{Pin, ServerPins};

/// The space of first definitions; the key is `server` or `server/tool`.
pub const SPACE: &str = "pins";
/// The space of approved definitions; the key is that of [`approval_key`].
pub const APPROVED: &str = "approved_tools";

/// An approval as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Approval {
    /// The server.
    pub server: String,
    /// The server's own name of the tool.
    pub tool: String,
    /// The approved fingerprint, in lower-case hex.
    pub fingerprint: String,
    /// The definition, if it is short enough.
    pub definition: Option<String>,
    /// The person who approved it.
    pub person: String,
}

impl Approval {
    /// Parses a document.
    pub fn parse(json: &str) -> Option<(Self, Pin)> {
        let approval: Self = serde_json::from_str(json).ok()?;
        let fingerprint = Hash::parse(&approval.fingerprint).ok()?;
        let definition = approval.definition.as_deref().map(Into::into);
        Some((approval, Pin { fingerprint, definition }))
    }

    /// The document.
    pub fn to_json(&self) -> String {
        json!({
            "server": self.server,
            "tool": self.tool,
            "fingerprint": self.fingerprint,
            "definition": self.definition,
            "person": self.person,
        })
        .to_string()
    }

    /// The approvals among these documents, by server and tool.
    pub fn by_server<'d>(
        documents: impl IntoIterator<Item = &'d str>,
    ) -> HashMap<String, HashMap<Box<str>, Vec<Pin>>> {
        let mut all: HashMap<String, HashMap<Box<str>, Vec<Pin>>> = HashMap::new();
        for json in documents {
            let Some((approval, pin)) = Self::parse(json) else {
                tracing::warn!("stored approval of a tool definition ignored: it cannot be parsed");
                continue;
            };
            let tools = all.entry(approval.server).or_default();
            tools.entry(approval.tool.into()).or_default().push(pin);
        }
        all
    }
}

/// The key of an approval. A server's tool has one approved definition; programs that dial in may
/// publish several tools of one name, so theirs have one for each fingerprint.
pub fn approval_key(server: &str, tool: &str, fingerprint: Option<Hash>) -> String {
    match fingerprint {
        Some(fingerprint) => format!("{server}/{tool}/{fingerprint}"),
        None => format!("{server}/{tool}"),
    }
}

/// The server and the tool of a key of [`SPACE`].
pub fn split_key(key: &str) -> (&str, Option<&str>) {
    match key.split_once('/') {
        Some((server, tool)) => (server, Some(tool)),
        None => (key, None),
    }
}

/// The document of a server that was listed.
pub(super) fn listed(server: &str) -> (Arc<str>, Arc<str>) {
    (server.into(), r#"{"listed":true}"#.into())
}

/// The document of a first definition.
pub(super) fn pin(server: &str, tool: &str, pin: &Pin) -> (Arc<str>, Arc<str>) {
    let json = json!({"fingerprint": pin.fingerprint.to_string(), "definition": pin.definition.as_deref()});
    (format!("{server}/{tool}").into(), json.to_string().into())
}

impl ServerPins {
    /// Restores a document of [`SPACE`]: of the server itself, or of one of its tools.
    pub fn restore(&self, tool: Option<&str>, json: &str) {
        #[derive(Deserialize)]
        struct Stored {
            fingerprint: String,
            definition: Option<String>,
        }
        let Some(tool) = tool else {
            self.state.write().is_listed = true;
            self.revision.fetch_add(1, Ordering::AcqRel);
            return;
        };
        let stored: Option<Stored> = serde_json::from_str(json).ok();
        let pin = stored.and_then(|stored| {
            let fingerprint = Hash::parse(&stored.fingerprint).ok()?;
            Some(Pin { fingerprint, definition: stored.definition.map(Into::into) })
        });
        let pin = pin.unwrap_or_else(|| {
            let server = &*self.server;
            tracing::warn!(server, tool, "stored pin cannot be parsed; its tool is quarantined");
            Pin { fingerprint: Hash([0; 32]), definition: None }
        });
        self.state.write().set_pin(tool, pin);
        self.revision.fetch_add(1, Ordering::AcqRel);
    }
}
