//! Protocol 2026-07-28, which is sessionless: how a request describes itself, and whether its headers
//! agree with its body.
//!
//! There is no handshake: every request names its protocol version and the capabilities of its client
//! in `params._meta`, and repeats the version, the method and its subject in headers, so that a proxy
//! that reads only headers sees the same request.
//!
//! Invariant: a request whose headers and body differ is rejected.
//! Start at [`judge`]; `sessionless/outgoing.rs` writes such requests. Tested by
//! `sessionless/tests.rs`.

use std::borrow::Cow;

use data_encoding::BASE64;
use toolgate_json::{members, peek, quote, shown, text};

use crate::envelope::Request;
use crate::{Refusal, code, method};

pub mod annotations;
mod outgoing;
#[cfg(test)]
mod tests;

pub use outgoing::{About, described, header_value, heads_of, without_claims};

/// Its name on the wire.
pub const VERSION: &str = "2026-07-28";

/// How many bytes the description of a client may have; toolgate keeps it.
const MAX_CLAIMS: usize = 16 * 1024;

/// Keys of `_meta` that belong to the protocol.
pub mod key {
    /// The protocol version of a request.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// The capabilities of the client.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// Name and version of the client.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// Which log messages the client wants with the answer.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// Name and version of the server.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// The listen request that a message belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
}

/// The description of a request in its `_meta`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims<'a> {
    /// Raw JSON: the capabilities of the client.
    pub capabilities: &'a str,
    /// Raw JSON: name and version of the client.
    pub client_info: Option<&'a str>,
    /// The log level that it wants; `None` for no log messages.
    pub log_level: Option<Cow<'a, str>>,
}

/// The headers that must agree with the body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Heads<'a> {
    /// `MCP-Protocol-Version`.
    pub version: Option<&'a str>,
    /// `Mcp-Method`.
    pub method: Option<&'a str>,
    /// `Mcp-Name`.
    pub name: Option<&'a str>,
}

/// Why a request of this protocol is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Objection {
    /// The JSON-RPC error code.
    pub code: i32,
    /// What is wrong and what to do about it.
    pub message: String,
    /// Raw JSON: details.
    pub data: Option<String>,
}

/// Whether a message is of this protocol or a later one, by its header or its body.
pub fn is_sessionless(header: Option<&str>, params: Option<&str>) -> bool {
    let is_named =
        |params| peek(params, &["_meta", key::PROTOCOL_VERSION]).ok().flatten().is_some();
    header == Some(VERSION) || params.is_some_and(is_named)
}

/// The description of the request, if it is complete and the headers agree with the body.
pub fn judge<'a>(heads: &Heads<'_>, request: &Request<'a>) -> Result<Claims<'a>, Objection> {
    examine(Some(heads), request)
}

/// The same for a transport without headers.
pub fn judge_body<'a>(request: &Request<'a>) -> Result<Claims<'a>, Objection> {
    examine(None, request)
}

fn examine<'a>(heads: Option<&Heads<'_>>, request: &Request<'a>) -> Result<Claims<'a>, Objection> {
    let invalid = |message: String| Objection::new(code::INVALID_PARAMS, message);
    let params = request.params.unwrap_or("{}");
    let meta = peek(params, &["_meta"])?.ok_or_else(|| {
        invalid(
            "`params._meta` is missing; protocol 2026-07-28 describes each request there".into(),
        )
    })?;
    let [version, capabilities, client_info, log_level] = members(
        meta,
        [key::PROTOCOL_VERSION, key::CLIENT_CAPABILITIES, key::CLIENT_INFO, key::LOG_LEVEL],
    )?;
    let missing =
        |key: &str, kind: &str| invalid(format!("`params._meta[\"{key}\"]` must be {kind}"));
    let version =
        version.and_then(text).ok_or_else(|| missing(key::PROTOCOL_VERSION, "a string"))?;
    let capabilities = capabilities
        .filter(|raw| raw.starts_with('{'))
        .ok_or_else(|| missing(key::CLIENT_CAPABILITIES, "an object"))?;
    if capabilities.len() + client_info.map_or(0, str::len) > MAX_CLAIMS {
        return Err(invalid(format!("the description of the client is over {MAX_CLAIMS} bytes")));
    }
    if let Some(heads) = heads {
        agree("MCP-Protocol-Version", heads.version, &version)?;
    }
    if version != VERSION {
        return Err(unsupported(&version));
    }
    if let Some(heads) = heads {
        agree("Mcp-Method", heads.method, &request.method)?;
        if let Some(name) = subject(&request.method, params)? {
            agree("Mcp-Name", heads.name, &name)?;
        }
    }
    if method::REMOVED.contains(&request.method.as_ref()) {
        let message = format!("protocol 2026-07-28 has no method `{}`", request.method);
        return Err(Objection::new(code::METHOD_NOT_FOUND, message));
    }
    Ok(Claims { capabilities, client_info, log_level: log_level.and_then(text) })
}

/// The text of a header value: text that does not fit into a header is sent in base64, between
/// `=?base64?` and `?=`. `None` if the base64 or its UTF-8 is invalid.
pub fn header_text(value: &str) -> Option<Cow<'_, str>> {
    let encoded = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    match encoded {
        None => Some(Cow::Borrowed(value)),
        Some(encoded) => {
            String::from_utf8(BASE64.decode(encoded.as_bytes()).ok()?).ok().map(Cow::Owned)
        }
    }
}

fn unsupported(version: &str) -> Objection {
    let message = format!("protocol version `{}` is not supported", shown(version));
    let data = format!(r#"{{"supported":["{VERSION}"],"requested":{}}}"#, quote(version));
    let objection = Objection::new(code::UNSUPPORTED_VERSION, message);
    Objection { data: Some(data), ..objection }
}

/// The value that `Mcp-Name` must have.
pub(crate) fn subject<'a>(method: &str, params: &'a str) -> Result<Option<Cow<'a, str>>, Refusal> {
    let key = match method {
        method::TOOLS_CALL | method::PROMPTS_GET => "name",
        method::RESOURCES_READ => "uri",
        method::TASKS_GET | method::TASKS_UPDATE | method::TASKS_CANCEL => "taskId",
        _ => return Ok(None),
    };
    Ok(peek(params, &[key])?.and_then(text))
}

pub(crate) fn agree(header: &str, value: Option<&str>, body: &str) -> Result<(), Objection> {
    let mismatch = |message| Err(Objection::new(code::HEADER_MISMATCH, message));
    let Some(value) = value else {
        return mismatch(format!("the header {header} is missing; it must repeat the body"));
    };
    match header_text(value.trim_matches([' ', '\t'])) {
        Some(value) if value == body => Ok(()),
        Some(_) => mismatch(format!("the header {header} and the body differ")),
        None => mismatch(format!("the header {header} is not valid base64 of UTF-8")),
    }
}

// === impl Objection ===

impl Objection {
    pub(crate) fn new(code: i32, message: String) -> Self {
        Self { code, message, data: None }
    }
}

impl From<toolgate_json::Error> for Objection {
    fn from(error: toolgate_json::Error) -> Self {
        Refusal::from(error).into()
    }
}

impl From<Refusal> for Objection {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.code, refusal.message)
    }
}
