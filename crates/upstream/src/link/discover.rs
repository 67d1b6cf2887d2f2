//! Whether a server is sessionless: `server/discover`, and the meaning of its answer.
//!
//! Invariant: the probe carries no session and opens none, so a sessionful server is unchanged
//! afterwards, or gone; then `initialize` follows.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;
use toolgate_admission::clearance::Closed;
use toolgate_json::{entries, items, members, peek, quote, text};
use toolgate_mcp::sessionless::{About, VERSION, described, heads_of, key};
use toolgate_mcp::{Incoming, Limits, Message, Payload, code, method, parse_server, write};

use super::Link;
use super::agent::Agent;
use super::handshake::LiveChannel;
use crate::channel::StatusClass;
use crate::era::Era;
use crate::failure::Failure;

/// How long a server may take to answer the probe, at most.
pub(super) const PROBE: Duration = Duration::from_secs(10);

/// Capabilities that have another meaning in protocol 2026-07-28.
const OMITTED_CAPABILITIES: [&str; 1] = ["tasks"];

/// The result of the probe.
pub(super) enum Discovered {
    /// It is sessionless; this is the equivalent answer to `initialize`.
    Sessionless(Bytes),
    /// It is not, or did not answer in time.
    Sessionful,
    /// It failed, which does not show its era.
    Unknown,
    /// It closed the connection.
    Gone,
}

impl Link {
    /// Probes the server without a handshake, for at most half of `limit`.
    pub(super) async fn discover(
        self: &Arc<Self>,
        up: &LiveChannel,
        limit: Duration,
    ) -> Discovered {
        let probed = timeout(PROBE.min(limit / 2), self.probe(up)).await;
        probed.unwrap_or(Discovered::Sessionful)
    }

    /// Probes the server without a handshake.
    pub(super) async fn probe(self: &Arc<Self>, up: &LiveChannel) -> Discovered {
        let asking = self.handshake_request(up, Closed::DISCOVER, |number| {
            let raw = write::request(number, method::DISCOVER, Some("{}"));
            let raw = String::from_utf8_lossy(&raw);
            let body = self.with_about(None, None, |about| described(&raw, about));
            let body = body.unwrap_or_else(|_| Bytes::copy_from_slice(raw.as_bytes()));
            let heads = heads_of(&raw);
            (body, heads)
        });
        match asking.await {
            Ok(answer) => match self.welcome_in(&answer) {
                Some(welcome) => {
                    self.server.eras.speaks(Era::Sessionless);
                    Discovered::Sessionless(welcome)
                }
                None => Discovered::Sessionful,
            },
            Err(Failure::Lost { .. }) => Discovered::Gone,
            // A rejection that is not JSON-RPC.
            Err(Failure::Refused { status }) if status.class != StatusClass::ServerError => {
                Discovered::Sessionful
            }
            Err(_) => Discovered::Unknown,
        }
    }

    /// Calls `with` with the description of the client of this link; on a shared link, of
    /// `agent_of`.
    pub(super) fn with_about<T>(
        &self,
        agent_of: Option<&dyn Agent>,
        log_level: Option<&str>,
        with: impl FnOnce(&About<'_>) -> T,
    ) -> T {
        let opening = agent_of.map_or(&self.opening, |agent| agent.opening());
        let opening = String::from_utf8_lossy(opening);
        let parts = members(&opening, ["capabilities", "clientInfo"]).unwrap_or_default();
        let [capabilities, client_info] = parts;
        let capabilities = declared(capabilities.unwrap_or("{}"));
        with(&About { capabilities: &capabilities, client_info, log_level })
    }

    /// The answer to the probe as an answer to `initialize`; `None` if it is not the answer of a
    /// sessionless server.
    fn welcome_in(&self, answer: &Bytes) -> Option<Bytes> {
        let Ok(Incoming::One(Message::Response(response))) =
            parse_server(answer, &Limits::default())
        else {
            return None;
        };
        let result = match response.payload {
            Payload::Result(result) => result,
            Payload::Error(error) if is_sessionless_error(error) => "{}",
            Payload::Error(_) => return None,
        };
        let parts = ["supportedVersions", "capabilities", "instructions", "_meta"];
        let [versions, capabilities, instructions, meta] = members(result, parts).ok()?;
        if matches!(response.payload, Payload::Result(_)) && !lists_ours(versions?) {
            return None;
        }
        let info = meta.and_then(|meta| peek(meta, &[key::SERVER_INFO]).ok().flatten());
        let name = quote(self.server.name());
        let info =
            info.map_or_else(|| format!(r#"{{"name":{name},"version":"unknown"}}"#), str::to_owned);
        let instructions = instructions.filter(|raw| raw.starts_with('"'));
        let instructions = instructions.map(|raw| format!(r#","instructions":{raw}"#));
        let result = format!(
            r#"{{"protocolVersion":"{}","capabilities":{},"serverInfo":{info}{}}}"#,
            self.sessionful_version(),
            capabilities.filter(|raw| raw.starts_with('{')).unwrap_or("{}"),
            instructions.unwrap_or_default()
        );
        Some(write::result("0", &result))
    }

    /// The protocol version that the agent wants, if it is known.
    fn sessionful_version(&self) -> &'static str {
        let opening = String::from_utf8_lossy(&self.opening);
        let wanted = peek(&opening, &["protocolVersion"]).ok().flatten().and_then(text);
        let version = wanted.and_then(|wanted| toolgate_mcp::Version::parse(&wanted));
        version.unwrap_or(toolgate_mcp::Version::LATEST).as_str()
    }
}

/// Whether an error is one that only sessionless servers use, and the server speaks our version.
pub(super) fn is_sessionless_error(error: &str) -> bool {
    let code = peek(error, &["code"]).ok().flatten().and_then(|code| code.parse().ok());
    match code {
        Some(code::HEADER_MISMATCH | code::MISSING_CAPABILITY) => true,
        Some(code::UNSUPPORTED_VERSION) => {
            let supported = peek(error, &["data", "supported"]).ok().flatten();
            supported.is_some_and(lists_ours)
        }
        _ => false,
    }
}

fn lists_ours(versions: &str) -> bool {
    let versions = items(versions).ok().flatten().unwrap_or_default();
    versions.into_iter().any(|raw| text(raw).as_deref() == Some(VERSION))
}

/// The capabilities of a client, without those that have another meaning now.
fn declared(capabilities: &str) -> Cow<'_, str> {
    let is_declared =
        |raw: &str| text(raw).is_some_and(|key| !OMITTED_CAPABILITIES.contains(&key.as_ref()));
    let all = entries(capabilities).ok().flatten().unwrap_or_default();
    if all.iter().all(|(key, _)| is_declared(key)) && capabilities.starts_with('{') {
        return Cow::Borrowed(capabilities);
    }
    let all = all.into_iter().filter(|(key, _)| is_declared(key));
    let all: Vec<_> = all.map(|(key, value)| format!("{key}:{value}")).collect();
    Cow::Owned(format!("{{{}}}", all.join(",")))
}
