//! What may stand under `sessions`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::SchemaConflict;
use super::kind::Idle;
use crate::problem::code;
use crate::reader::{At, KeyRule, Named, Read, Reader, section};
use crate::settings::tools::{RawSessionTool, ToolName};
use crate::tree::{Key, Kind, Node};
use crate::value::{Glob, Period, Sha256Hex, Size, Switch, Text, TokenReference, Whole};

section! {
    /// Programs that connect over WebSocket and publish tools: 1C clients, test clients, anything that can hold a WebSocket.
    #[schemars(rename = "Sessions")]
    struct RawSessions {
        /// Path of the WebSocket.
        #[schemars(extend("default" = "/sessions"))]
        path: Text,
        /// Tokens with which programs may connect (in the path: `/sessions/<token>`). Without any, everybody who reaches the listener may.
        tokens: Vec<At<RawSessionToken>>,
        /// How often a WebSocket ping is sent, milliseconds; 0 is never.
        #[schemars(extend("default" = 20000))]
        ws_ping_interval_ms: Whole,
        /// A socket without any inbound frame for so long is dead, milliseconds.
        #[schemars(extend("default" = 30000))]
        ws_ping_timeout_ms: Whole,
        /// What `session.register` answers as heartbeat interval, milliseconds; informational.
        #[schemars(extend("default" = 15000))]
        heartbeat_interval_ms: Whole,
        /// A socket that does not register within this time is closed, seconds; at least the grace.
        #[schemars(extend("default" = 30))]
        register_within_secs: Whole,
        /// How long a session that lost its socket is kept, seconds.
        #[schemars(extend("default" = 30))]
        reconnection_grace_secs: Whole,
        /// How long a program asked to end may take, milliseconds (only with `idle: shutdown`).
        #[schemars(extend("default" = 5000))]
        graceful_kill_grace_ms: Whole,
        /// The largest WebSocket frame.
        #[schemars(extend("default" = "16MiB"))]
        frame: Size,
        /// A late answer on a socket that has not registered binds it to its session again.
        #[schemars(extend("default" = true))]
        rebind: Switch,
        /// Publish tool names in a stable transliteration, the original in `title`.
        #[schemars(extend("default" = false))]
        ascii_names: Switch,
        /// How different schemas of one tool name are shown: `merged` (one object schema) or `oneof` (as v8-session-manager does).
        #[schemars(extend("default" = "merged"))]
        conflict: SchemaConflict,
        /// Keep the showcase: agents see tools also while nobody serves them.
        #[schemars(extend("default" = true))]
        cache: Switch,
        /// How long the showcase keeps tools after their last register.
        #[schemars(extend("default" = "5d"))]
        cache_life_period: Period,
        /// How long a new call waits for a disconnected session, seconds. Kind `server` has 10 of its own.
        #[schemars(extend("default" = 0))]
        reconnect_wait_secs: Whole,
        /// A session without calls for so long is idle, seconds; 0 is never.
        #[schemars(extend("default" = 0))]
        idle_timeout_secs: Whole,
        /// What `session.register` answers as idle timeout, seconds, if that is not what is in force; closes nothing.
        reported_idle_secs: Whole,
        /// What happens to an idle session: `hide` its tools, or ask the program to end (`shutdown`).
        #[schemars(extend("default" = "hide"))]
        idle: Idle,
        /// How many calls may wait for one session.
        #[schemars(extend("default" = 100))]
        queue: Whole,
        /// After a timeout, how long the late answer is awaited before the next call is sent, seconds.
        #[schemars(extend("default" = 30))]
        late_answer_secs: Whole,
        /// Refuse arguments with keys that are no 1C identifiers (1C clients lose such calls silently).
        #[schemars(extend("default" = "on"))]
        identifier_keys: Switch,
        /// Deadline of calls. Kind `server` has `1h` of its own.
        #[schemars(extend("default" = "60s"))]
        timeout: Period,
        /// Let agents ask for no deadline with `_v8_call_options`. Kind `server` has `on` of its own.
        #[schemars(extend("default" = "off"))]
        no_deadline: Switch,
        /// Single tools, by their own names.
        tools: Named<ToolName, RawSessionTool>,
        /// Settings of single kinds; what is not given there comes from here.
        kinds: Named<KindName, RawKind>,
        /// Settings of single sessions, by glob for the session id; the first that matches counts.
        session_ids: Named<KindName, RawSessionOverride>,
    }
}

section! {
    foreign = &[("deadline", "did you mean `timeout`?")];
    /// Settings of sessions of one kind.
    #[schemars(rename = "SessionKind")]
    struct RawKind {
        /// How long a new call waits for a disconnected session, seconds.
        reconnect_wait_secs: Whole,
        /// A session without calls for so long is idle, seconds; 0 is never.
        idle_timeout_secs: Whole,
        /// What happens to an idle session: `hide` or `shutdown`.
        idle: Idle,
        /// How many calls may wait for one session.
        queue: Whole,
        /// After a timeout, how long the late answer is awaited, seconds.
        late_answer_secs: Whole,
        /// Refuse arguments with keys that are no 1C identifiers.
        identifier_keys: Switch,
        /// Deadline of calls.
        timeout: Period,
        /// Let agents ask for no deadline.
        no_deadline: Switch,
        /// Single tools, by their own names.
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
    /// A token with which programs may connect, bound to some of them.
    #[schemars(rename = "BoundToken", extend("oneOf" = [{"required": ["token"]}, {"required": ["token_sha256"]}]))]
    struct RawBoundToken {
        /// The token, at least 20 characters, as `env:NAME` or `file:PATH`.
        token: TokenReference,
        /// In place of `token`: its SHA-256 in hexadecimal.
        token_sha256: Sha256Hex,
        /// Globs for the kinds that may use it. Default: all.
        kinds: Vec<Glob>,
        /// Globs for the infobase names that may use it. Default: all.
        infobases: Vec<Glob>,
        /// Globs for the client uids that may use it. Default: all.
        uids: Vec<Glob>,
    }
}

/// A reference alone, or one that is bound.
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
            "description": "A reference alone, or one bound to kinds, infobases and uids.",
            "anyOf": [
                generator.subschema_for::<TokenReference>(),
                generator.subschema_for::<RawBoundToken>(),
            ],
        })
    }
}

/// Kinds and session ids: what programs call themselves.
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
