//! Which links may start a process: none for agents that may not use it.
//!
//! A grant that may call nothing, or is frozen, can open agent sessions and list; so can every
//! grant if the server is frozen. toolgate answers them itself, so that no number of agent sessions
//! starts a child. Once the grant may call, or the freeze is lifted, the next request starts it.
//!
//! Invariant: a process is started only if at least one agent session of the link may call it.

use bytes::Bytes;
use serde_json::json;
use toolgate_admission::call_request::CallRequest;
use toolgate_admission::list_kind::Kind;
use toolgate_admission::start_denied::StartDenied;
use toolgate_json::{peek, text};
use toolgate_mcp::{Version, code, method, write};

use super::Link;

impl Link {
    /// Why no process may be started for this link; `None` if one may, if its own one runs, or if the
    /// server is not a process.
    pub(crate) fn start_denied(&self) -> Option<StartDenied> {
        // A shared process may run for others, or because toolgate has listed it.
        if (self.is_up() && !self.is_shared()) || !self.server.settings.backs_off {
            return None;
        }
        let mut barred = None;
        for session in self.sessions() {
            let why = session.admission().start_denied(&session.grant(), self.server.name());
            barred = Some(why?);
        }
        barred
    }

    /// The answer to `initialize` in place of a server that may not be started: the capabilities
    /// that it last advertised, or all that it may have.
    pub(super) fn unstarted_welcome(&self) -> Option<Bytes> {
        self.start_denied()?;
        let opening = String::from_utf8_lossy(&self.opening);
        let wanted = peek(&opening, &["protocolVersion"]).ok().flatten().and_then(text);
        let version = wanted.and_then(|version| Version::parse(&version));
        let version = version.unwrap_or(Version::LATEST);
        let known = self.server.list_cache.of(&self.client_profile);
        let capabilities = known.as_ref().map_or(ANYTHING, |advertised| &advertised.capabilities);
        let result = format!(
            r#"{{"protocolVersion":"{}","capabilities":{capabilities},"serverInfo":{}}}"#,
            version.as_str(),
            json!({"name": "toolgate", "version": env!("CARGO_PKG_VERSION")}),
        );
        Some(write::result("0", &result))
    }

    /// The answer to a request that needs no permit, if the server may not be started for it.
    pub(crate) fn unstarted_answer(&self, request: &CallRequest<'_>) -> Option<Bytes> {
        let barred = self.start_denied()?;
        let quiet = [method::PING, method::LOGGING_SET_LEVEL, method::RESOURCES_UNSUBSCRIBE];
        if quiet.contains(&request.method) {
            return Some(write::result(request.id, "{}"));
        }
        let kind = Kind::listed_by(request.method)?;
        Some(match barred {
            StartDenied::NothingAllowed => {
                write::result(request.id, &format!(r#"{{"{}":[]}}"#, kind.member()))
            }
            StartDenied::Frozen(what) => {
                let text = format!(
                    "[FROZEN] {what} by a person, so nothing was sent. Do not retry; ask the \
                     operator when it is lifted"
                );
                let data = json!({"error_code": "frozen", "effect": "not_started"});
                let data = data.to_string();
                write::error(Some(request.id), code::INVALID_PARAMS, &text, Some(&data))
            }
        })
    }
}

/// Nothing is known of a server that was never connected.
const ANYTHING: &str = concat!(
    r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"#,
    r#""resources":{"listChanged":true,"subscribe":true},"completions":{},"logging":{}}"#
);
