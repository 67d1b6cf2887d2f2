//! The params of `session.register`, read strictly: every complaint names its field.

use std::sync::Arc;

use toolgate_mcp::text;

use crate::object::{Member, members, value};
use crate::pool::{Pool, ReadTools};

/// What a session says of itself.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) uid: Arc<str>,
    pub(crate) card: SessionInfo,
    pub(crate) tools: ReadTools,
}

/// What a session says of itself but for its tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionInfo {
    pub(crate) kind: String,
    pub(crate) version: String,
    pub(crate) infobase_name: String,
    pub(crate) ib_session_number: u32,
    pub(crate) config_id: String,
    /// Whether it has sent a `config_id` of its own.
    pub(crate) config_id_sent: bool,
    pub(crate) host_id: String,
    pub(crate) pid: Option<u32>,
    pub(crate) cluster_server: Option<String>,
}

/// A field longer than this is refused: it would stand in every list and row.
const MAX_FIELD: usize = 512;

impl Registration {
    /// Reads raw params; the error is a message for the client.
    pub(crate) fn read(raw: Option<&str>, pool: &Pool, max: usize) -> Result<Self, String> {
        let params = raw.ok_or("`params` is missing")?;
        let members = members(params).map_err(|_| "`params` must be an object")?;
        let required = |key: &str| string(&members, key)?.ok_or(format!("`{key}` is missing"));
        let filled = |key: &str| match required(key)? {
            text if text.is_empty() => Err(format!("`{key}` must not be empty")),
            text => Ok(text),
        };
        let uid: Arc<str> = filled("client_uid")?.into();
        let kind = required("kind")?;
        let version = required("version")?;
        let infobase_name = filled("infobase_name")?;
        let ib_session_number =
            number(&members, "ib_session_number")?.ok_or("`ib_session_number` is missing")?;
        let config_id = string(&members, "config_id")?;
        let tools = value(&members, "tools").ok_or("`tools` is missing")?;
        let card = SessionInfo {
            version,
            infobase_name,
            ib_session_number,
            config_id_sent: config_id.is_some(),
            config_id: config_id.unwrap_or_else(|| kind.clone()),
            kind,
            host_id: string(&members, "host_id")?.unwrap_or_else(|| "unknown".to_owned()),
            pid: number(&members, "pid")?,
            cluster_server: string(&members, "cluster_server")?,
        };
        Ok(Self { uid, card, tools: pool.read(tools, max)? })
    }
}

/// The tools in the params of `session.tools_changed`.
pub(crate) fn changed_tools(
    raw: Option<&str>,
    pool: &Pool,
    max: usize,
) -> Result<ReadTools, String> {
    let params = raw.ok_or("`params` is missing")?;
    let members = members(params).map_err(|_| "`params` must be an object")?;
    pool.read(value(&members, "tools").ok_or("`tools` is missing")?, max)
}

fn string(members: &[Member<'_>], key: &str) -> Result<Option<String>, String> {
    match value(members, key) {
        None | Some("null") => Ok(None),
        Some(raw) => match text(raw) {
            Some(text) if text.len() > MAX_FIELD => {
                Err(format!("`{key}` is longer than {MAX_FIELD} bytes"))
            }
            // It would stand in logs.
            Some(text) if text.contains(char::is_control) => {
                Err(format!("`{key}` has control characters"))
            }
            Some(text) => Ok(Some(text.into_owned())),
            None => Err(format!("`{key}` must be a string")),
        },
    }
}

fn number(members: &[Member<'_>], key: &str) -> Result<Option<u32>, String> {
    match value(members, key) {
        None | Some("null") => Ok(None),
        Some(raw) => match raw.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(format!("`{key}` must be a whole number from 0 to {}", u32::MAX)),
        },
    }
}
