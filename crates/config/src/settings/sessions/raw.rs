//! The keys of `sessions`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use toolgate_session::{Idle, SchemaConflict, Selectors};

use crate::problem::code;
use crate::reader::{At, KeyRule, Named, Read, Reader, section};
use crate::settings::servers::Pin;
use crate::settings::tools::{RawSessionTool, ToolName};
use crate::syntax::{Key, Kind, Node};
use crate::value::{Pattern, Period, Sha256Hex, Size, Switch, Text, TokenReference, Whole, Word};

section! {
    /// Programs that connect over WebSocket and publish tools: 1C clients, test clients, anything that can hold a WebSocket.
    #[schemars(rename = "Sessions")]
    struct RawSessions {
        /// Path of the WebSocket.
        #[schemars(extend("default" = "/sessions"))]
        path: Text,
        /// Tokens with which programs may connect (in the path: `/sessions/<token>`). Without tokens, any program that can reach the listener may.
        tokens: Vec<At<RawSessionToken>>,
        /// Interval of WebSocket pings, in milliseconds; 0 disables them.
        #[schemars(extend("default" = 20000))]
        ws_ping_interval_ms: Whole,
        /// Time without inbound frames after which a socket is closed, in milliseconds.
        #[schemars(extend("default" = 30000))]
        ws_ping_timeout_ms: Whole,
        /// Heartbeat interval reported by `session.register`, in milliseconds; informational.
        #[schemars(extend("default" = 15000))]
        heartbeat_interval_ms: Whole,
        /// Time after which an unregistered socket is closed, in seconds; at least `reconnection_grace_secs`.
        #[schemars(extend("default" = 30))]
        register_within_secs: Whole,
        /// Time that a session without a socket is kept, in seconds.
        #[schemars(extend("default" = 30))]
        reconnection_grace_secs: Whole,
        /// Time for a program to end after it was asked to, in milliseconds (only with `idle: shutdown`).
        #[schemars(extend("default" = 5000))]
        graceful_kill_grace_ms: Whole,
        /// The largest WebSocket frame.
        #[schemars(extend("default" = "16MiB"))]
        frame: Size,
        /// A late answer on a socket that has not registered re-binds it to its session.
        #[schemars(extend("default" = true))]
        rebind: Switch,
        /// Publish tool names in a stable transliteration, with the original in `title`.
        #[schemars(extend("default" = false))]
        ascii_names: Switch,
        /// Presentation of different schemas of one tool name: `merged` (one object schema) or `oneof` (as v8-session-manager does).
        #[schemars(extend("default" = "merged"))]
        conflict: Word<SchemaConflict>,
        /// Selectors in the schemas of tools: `session_id` (required as soon as two sessions serve a tool) or `any` (`session_id`, `infobase_name` and `kind`, none required; for clients that validate arguments). `any` needs `conflict: merged`.
        #[schemars(extend("default" = "session_id"))]
        selectors: Word<Selectors>,
        /// Reaction to new and changed definitions of tools, as for servers. Hidden text is quarantined in any case.
        #[schemars(extend("default" = "off"))]
        pin: Pin,
        /// Keep the showcase: tools stay listed while no session serves them.
        #[schemars(extend("default" = true))]
        cache: Switch,
        /// Time that the showcase keeps tools after their last register.
        #[schemars(extend("default" = "5d"))]
        cache_life_period: Period,
        /// Time that a new call waits for a disconnected session, in seconds. Default for kind `server`: 10.
        #[schemars(extend("default" = 0))]
        reconnect_wait_secs: Whole,
        /// Time without calls after which a session is idle, in seconds; 0 means never.
        #[schemars(extend("default" = 0))]
        idle_timeout_secs: Whole,
        /// Idle timeout reported by `session.register`, in seconds, if it differs from `idle_timeout_secs`; closes nothing.
        reported_idle_secs: Whole,
        /// Action on an idle session: `hide` its tools, or ask the program to end (`shutdown`).
        #[schemars(extend("default" = "hide"))]
        idle: Word<Idle>,
        /// Maximum number of calls that wait for one session.
        #[schemars(extend("default" = 100))]
        queue: Whole,
        /// Time to wait for the late answer after a timeout before the next call is sent, in seconds.
        #[schemars(extend("default" = 30))]
        late_answer_secs: Whole,
        /// Refuse argument keys that are not 1C identifiers (1C clients lose such calls silently).
        #[schemars(extend("default" = "on"))]
        identifier_keys: Switch,
        /// Deadline of calls. Default for kind `server`: `1h`.
        #[schemars(extend("default" = "60s"))]
        timeout: Period,
        /// Let agents disable the deadline with `_v8_call_options`. Default for kind `server`: `on`.
        #[schemars(extend("default" = "off"))]
        no_deadline: Switch,
        /// Settings of single tools, by their own names.
        tools: Named<ToolName, RawSessionTool>,
        /// Settings of single kinds; other values are inherited from `sessions`.
        kinds: Named<KindName, RawKind>,
        /// Settings of single sessions, by glob for the session id; the first match applies.
        session_ids: Named<KindName, RawSessionOverride>,
    }
}

section! {
    foreign = &[("deadline", "did you mean `timeout`?")];
    /// Settings of sessions of one kind.
    #[schemars(rename = "SessionKind")]
    struct RawKind {
        /// Time that a new call waits for a disconnected session, in seconds.
        reconnect_wait_secs: Whole,
        /// Time without calls after which a session is idle, in seconds; 0 means never.
        idle_timeout_secs: Whole,
        /// Action on an idle session: `hide` or `shutdown`.
        idle: Word<Idle>,
        /// Maximum number of calls that wait for one session.
        queue: Whole,
        /// Time to wait for the late answer after a timeout, in seconds.
        late_answer_secs: Whole,
        /// Refuse argument keys that are not 1C identifiers.
        identifier_keys: Switch,
        /// Deadline of calls.
        timeout: Period,
        /// Let agents disable the deadline.
        no_deadline: Switch,
        /// Settings of single tools, by their own names.
        tools: Named<ToolName, RawSessionTool>,
    }
}

section! {
    /// Settings of single sessions.
    #[schemars(rename = "SessionOverride")]
    struct RawSessionOverride {
        /// Deadline of calls.
        timeout: Period,
    }
}

section! {
    foreign = &[("kind", "did you mean `kinds`?"), ("infobase_name", "did you mean `infobases`?"), ("client_uid", "did you mean `uids`?")];
    /// A session token that is restricted to some programs.
    #[schemars(rename = "BoundToken", extend("oneOf" = [{"required": ["token"]}, {"required": ["token_sha256"]}]))]
    struct RawBoundToken {
        /// The token, at least 20 characters, as `env:NAME` or `file:PATH`.
        token: TokenReference,
        /// SHA-256 of the token in hexadecimal, instead of `token`.
        token_sha256: Sha256Hex,
        /// Globs for the kinds that may use it. Default: all.
        kinds: Vec<Pattern>,
        /// Globs for the infobase names that may use it. Default: all.
        infobases: Vec<Pattern>,
        /// Globs for the client uids that may use it. Default: all.
        uids: Vec<Pattern>,
    }
}

/// A reference alone, or a bound token.
#[derive(Debug)]
pub(crate) struct RawSessionToken(pub(crate) RawBoundToken);

impl Read for RawSessionToken {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        if matches!(node.kind, Kind::Map { .. }) {
            return Some(Self(RawBoundToken::read(node, reader)?));
        }
        let token = Some(At::read(node, reader)?);
        Some(Self(RawBoundToken { token, ..RawBoundToken::default() }))
    }
}

impl JsonSchema for RawSessionToken {
    fn schema_name() -> Cow<'static, str> {
        "SessionToken".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A reference, or a token restricted to kinds, infobases and uids.",
            "anyOf": [
                generator.subschema_for::<TokenReference>(),
                generator.subschema_for::<RawBoundToken>(),
            ],
        })
    }
}

/// Kinds and session ids, as programs name themselves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KindName;

impl KeyRule for KindName {
    const PATTERN: &'static str = "^.+$";

    fn check(key: &Key, reader: &mut Reader<'_>) {
        if key.text.trim().is_empty() {
            reader.error(code::INVALID_NAME, key.span, "the name is empty");
        }
    }
}
