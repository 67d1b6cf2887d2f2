//! The params of `session.register`, parsed strictly: every error names its field.

use std::sync::Arc;

use toolgate_json::object::{Member, members, value};
use toolgate_json::text;

use crate::error::{MAX_FIELD, ParamsError};
use crate::pool::{Pool, ReadTools};

/// A parsed registration.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) uid: Arc<str>,
    pub(crate) card: SessionInfo,
    pub(crate) tools: ReadTools,
}

/// The description that a session registers, without its tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionInfo {
    pub(crate) kind: String,
    pub(crate) version: String,
    pub(crate) infobase_name: String,
    pub(crate) ib_session_number: u32,
    pub(crate) config_id: String,
    /// Whether it sent its own `config_id`.
    pub(crate) config_id_sent: bool,
    pub(crate) host_id: String,
    pub(crate) pid: Option<u32>,
    pub(crate) cluster_server: Option<String>,
}

impl Registration {
    /// Parses raw params.
    pub(crate) fn read(raw: Option<&str>, pool: &Pool, max: usize) -> Result<Self, ParamsError> {
        let params = raw.ok_or(ParamsError::Missing("params"))?;
        let members = members(params).map_err(|_| ParamsError::NotAnObject)?;
        let required = |key: &'static str| string(&members, key)?.ok_or(ParamsError::Missing(key));
        let filled = |key: &'static str| match required(key)? {
            text if text.is_empty() => Err(ParamsError::Empty(key)),
            text => Ok(text),
        };
        let uid: Arc<str> = filled("client_uid")?.into();
        let kind = required("kind")?;
        let version = required("version")?;
        let infobase_name = filled("infobase_name")?;
        let ib_session_number = number(&members, "ib_session_number")?
            .ok_or(ParamsError::Missing("ib_session_number"))?;
        let config_id = string(&members, "config_id")?;
        let tools = value(&members, "tools").ok_or(ParamsError::Missing("tools"))?;
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
) -> Result<ReadTools, ParamsError> {
    let params = raw.ok_or(ParamsError::Missing("params"))?;
    let members = members(params).map_err(|_| ParamsError::NotAnObject)?;
    pool.read(value(&members, "tools").ok_or(ParamsError::Missing("tools"))?, max)
}

fn string(members: &[Member<'_>], key: &'static str) -> Result<Option<String>, ParamsError> {
    match value(members, key) {
        None | Some("null") => Ok(None),
        Some(raw) => match text(raw) {
            Some(text) if text.len() > MAX_FIELD => Err(ParamsError::TooLong(key)),
            // The value would be in logs.
            Some(text) if text.contains(char::is_control) => {
                Err(ParamsError::ControlCharacters(key))
            }
            Some(text) => Ok(Some(text.into_owned())),
            None => Err(ParamsError::NotAString(key)),
        },
    }
}

fn number(members: &[Member<'_>], key: &'static str) -> Result<Option<u32>, ParamsError> {
    match value(members, key) {
        None | Some("null") => Ok(None),
        Some(raw) => match raw.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(ParamsError::NotANumber(key)),
        },
    }
}
