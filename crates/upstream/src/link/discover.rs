//! Whether a server speaks protocol 2026-07-28: `server/discover`, and what its answer means.
//!
//! Invariant: a server that does not is left as it was, or gone: the probe carries no session and
//! opens none, and whoever asks it goes on with `initialize`.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;
use toolgate_admission::clearance::Closed;
use toolgate_json::{entries, items, members, peek, quote, text};
use toolgate_mcp::modern::{About, VERSION, described, heads_of, key};
use toolgate_mcp::{Incoming, Limits, Message, Payload, code, method, parse_server, write};

use super::Link;
use super::agent::Agent;
use super::handshake::Up;
use crate::era::Era;
use crate::failure::Failure;

/// How long a server may take to say that it speaks the newer protocol, at most.
const PROBE: Duration = Duration::from_secs(10);

/// Capabilities that mean something else in the newer protocol.
const NOT_SAID: [&str; 1] = ["tasks"];

/// What a server said to the probe.
pub(super) enum Discovered {
    /// It speaks the newer protocol; this is what it would say to `initialize`.
    Modern(Bytes),
    /// It does not, or says nothing.
    Not,
    /// It is gone.
    Gone,
}

impl Link {
    /// Asks the server what it can do without a handshake. It has half of `limit`, so that enough
    /// is left for one.
    pub(super) async fn discover(self: &Arc<Self>, up: &Up, limit: Duration) -> Discovered {
        let asking = self.ask_first(up, Closed::DISCOVER, |number| {
            let raw = write::request(number, method::DISCOVER, Some("{}"));
            let raw = String::from_utf8_lossy(&raw);
            let body = self.with_about(None, None, |about| described(&raw, about));
            let body = body.unwrap_or_else(|_| Bytes::copy_from_slice(raw.as_bytes()));
            let heads = heads_of(&raw);
            (body, heads)
        });
        let eras = &self.server.eras;
        match timeout(PROBE.min(limit / 2), asking).await {
            Ok(Ok(answer)) => {
                if let Some(welcome) = self.welcome_in(&answer) {
                    eras.speaks(Era::Modern);
                    return Discovered::Modern(welcome);
                }
                eras.refuses(Era::Modern);
                Discovered::Not
            }
            Ok(Err(Failure::Lost { .. })) => {
                eras.refuses(Era::Modern);
                Discovered::Gone
            }
            // Refused without a word of JSON, or silence.
            Ok(Err(Failure::Refused { status: ..500 })) | Err(_) => {
                eras.refuses(Era::Modern);
                Discovered::Not
            }
            Ok(Err(_)) => Discovered::Not,
        }
    }

    /// How whoever speaks through this link describes itself; where agents share it, `speaker`
    /// is the one who does.
    pub(super) fn with_about<T>(
        &self,
        speaker: Option<&dyn Agent>,
        log_level: Option<&str>,
        with: impl FnOnce(&About<'_>) -> T,
    ) -> T {
        let opening = speaker.map_or(&self.opening, |agent| agent.opening());
        let opening = String::from_utf8_lossy(opening);
        let parts = members(&opening, ["capabilities", "clientInfo"]).unwrap_or_default();
        let [capabilities, client_info] = parts;
        let capabilities = said(capabilities.unwrap_or("{}"));
        with(&About { capabilities: &capabilities, client_info, log_level })
    }

    /// What the answer to the probe would be as one to `initialize`; none if it is no answer of a
    /// server of the newer protocol.
    fn welcome_in(&self, answer: &Bytes) -> Option<Bytes> {
        let Ok(Incoming::One(Message::Response(response))) =
            parse_server(answer, &Limits::default())
        else {
            return None;
        };
        let result = match response.payload {
            Payload::Result(result) => result,
            Payload::Error(error) if knows_us(error) => "{}",
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
            self.older_version(),
            capabilities.filter(|raw| raw.starts_with('{')).unwrap_or("{}"),
            instructions.unwrap_or_default()
        );
        Some(write::result("0", &result))
    }

    /// The version that its agent wants, if there is one like that.
    fn older_version(&self) -> &'static str {
        let opening = String::from_utf8_lossy(&self.opening);
        let wanted = peek(&opening, &["protocolVersion"]).ok().flatten().and_then(text);
        let version = wanted.and_then(|wanted| toolgate_mcp::Version::parse(&wanted));
        version.unwrap_or(toolgate_mcp::Version::LATEST).as_str()
    }
}

/// The codes that only servers of the newer protocol use; but one that does not speak our version
/// of it is of no use.
fn knows_us(error: &str) -> bool {
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

/// The capabilities of a client, without those that mean something else now.
fn said(capabilities: &str) -> Cow<'_, str> {
    let is_said = |raw: &str| text(raw).is_some_and(|key| !NOT_SAID.contains(&key.as_ref()));
    let all = entries(capabilities).ok().flatten().unwrap_or_default();
    if all.iter().all(|(key, _)| is_said(key)) && capabilities.starts_with('{') {
        return Cow::Borrowed(capabilities);
    }
    let all = all.into_iter().filter(|(key, _)| is_said(key));
    let all: Vec<_> = all.map(|(key, value)| format!("{key}:{value}")).collect();
    Cow::Owned(format!("{{{}}}", all.join(",")))
}
