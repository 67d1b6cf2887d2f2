//! `sessions`: programs that connect over WebSocket and publish tools.

mod kind;
mod raw;

use std::path::PathBuf;
use std::time::Duration;

pub use self::kind::{Idle, KindSettings};
pub(crate) use self::raw::RawSessions;
use self::raw::{KindName, RawSessionToken};
use super::tools::{TIMEOUTS, ToolConfig, lower_tools};
use crate::finding::Span;
use crate::problem::code;
use crate::reader::{At, Named, Reader};
use crate::value::{Glob, Period, Size, Text, TokenHash, Whole, one_token, within, words};

/// Sessions: programs that connect over WebSocket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionsConfig {
    /// The path of the WebSocket; begins with `/` and does not end with it.
    pub path: String,
    /// Accepted tokens; if empty, every program that reaches the listener may connect.
    pub tokens: Vec<SessionToken>,
    /// How often a WebSocket ping is sent; `None` is never.
    pub ws_ping_interval: Option<Duration>,
    /// A socket without inbound frames for this time is closed.
    pub ws_ping_timeout: Duration,
    /// The `heartbeat_interval_ms` in the answer to `session.register`; informational.
    pub heartbeat_interval: Duration,
    /// A socket that does not register within this time is closed.
    pub register_within: Duration,
    /// How long a session without socket is kept.
    pub reconnection_grace: Duration,
    /// The `grace_ms` of `session.shutdown`.
    pub graceful_kill_grace: Duration,
    /// The largest WebSocket frame, bytes.
    pub frame: u64,
    /// Whether an answer on an unregistered socket re-binds it to its session.
    pub rebind: bool,
    /// Whether tool names are published in transliteration.
    pub ascii_names: bool,
    /// How different schemas of one tool name are presented.
    pub conflict: SchemaConflict,
    /// Whether the showcase is kept.
    pub cache: bool,
    /// Time that the showcase keeps tools after their last register.
    pub cache_life_period: Duration,
    /// The `idle_timeout_secs` in the answer to `session.register`, if it differs from the
    /// effective one.
    pub reported_idle_secs: Option<u64>,
    /// A `tools_cache.json` that is imported and kept up to date; only from a drop-in
    /// configuration.
    pub cache_file: Option<PathBuf>,
    /// Settings of kinds without their own.
    pub common: KindSettings,
    /// Settings of single kinds, complete. Kind `server` is always among them.
    pub kinds: Vec<(String, KindSettings)>,
    /// Deadlines of single sessions, by glob for the session id; the first match applies.
    pub session_timeouts: Vec<(Glob, Duration)>,
}

impl SessionsConfig {
    /// The settings for sessions of a kind.
    pub fn of_kind(&self, kind: &str) -> &KindSettings {
        self.kinds.iter().find(|(name, _)| name == kind).map_or(&self.common, |(_, own)| own)
    }
}

/// A token that lets programs connect, and its bounds; `None` is unbounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionToken {
    /// The hash of the token.
    pub token: TokenHash,
    /// Kinds that may use it.
    pub kinds: Option<Vec<Glob>>,
    /// Infobase names that may use it.
    pub infobases: Option<Vec<Glob>>,
    /// Client uids that may use it.
    pub uids: Option<Vec<Glob>>,
}

words! {
    /// How different schemas of one tool name are presented.
    pub enum SchemaConflict {
        /// One object schema, the union of all.
        Merged = "merged",
        /// A branch for each, under `oneOf`.
        Oneof = "oneof",
    }
}

impl RawSessions {
    /// The section, with the position of each token.
    pub(crate) fn lower(
        mut self,
        reader: &mut Reader<'_>,
    ) -> (SessionsConfig, Vec<(TokenHash, Span)>) {
        let millis = (Whole(0), Whole(3_600_000));
        let secs = (Whole(0), Whole(86_400));
        let interval = within(self.ws_ping_interval_ms.take(), millis, Whole(20_000), reader).0;
        let timeout = (Whole(100), Whole(3_600_000));
        let timeout = within(self.ws_ping_timeout_ms.take(), timeout, Whole(30_000), reader).0;
        let heartbeat = within(self.heartbeat_interval_ms.take(), millis, Whole(15_000), reader).0;
        let kill = within(self.graceful_kill_grace_ms.take(), millis, Whole(5000), reader).0;
        let grace = within(self.reconnection_grace_secs.take(), secs, Whole(30), reader).0;
        let register = self.lower_register_within(grace, reader);
        let life = (Period::secs(60), Period::days(3650));
        let life = within(self.cache_life_period.take(), life, Period::days(5), reader).0;
        let frames = (Size::kib(64), Size::mib(256));
        let tokens = self.lower_tokens(reader);
        let (common, kinds) = self.lower_kinds(reader);
        let config = SessionsConfig {
            path: self.lower_path(reader),
            ws_ping_interval: (interval > 0).then(|| Duration::from_millis(interval)),
            ws_ping_timeout: Duration::from_millis(timeout),
            heartbeat_interval: Duration::from_millis(heartbeat),
            register_within: Duration::from_secs(register),
            reconnection_grace: Duration::from_secs(grace),
            graceful_kill_grace: Duration::from_millis(kill),
            frame: within(self.frame.take(), frames, Size::mib(16), reader).0,
            rebind: self.rebind.is_none_or(|at| at.value.0),
            ascii_names: self.ascii_names.is_some_and(|at| at.value.0),
            conflict: self.conflict.map_or(SchemaConflict::Merged, |at| at.value),
            cache: self.cache.is_none_or(|at| at.value.0),
            cache_life_period: life,
            reported_idle_secs: self.reported_idle_secs.take().map(|at| at.value.0),
            cache_file: None,
            common,
            kinds,
            session_timeouts: lower_session_timeouts(self.session_ids, reader),
            tokens: tokens.iter().map(|(token, _)| token.clone()).collect(),
        };
        (config, tokens.into_iter().map(|(token, span)| (token.token, span)).collect())
    }

    /// The default is the grace period; a shorter one would close sockets that may still re-bind.
    fn lower_register_within(&mut self, grace: u64, reader: &mut Reader<'_>) -> u64 {
        let written = self.register_within_secs.take();
        let span = written.as_ref().map(|at| at.span);
        let secs = within(written, (Whole(1), Whole(86_400)), Whole(grace.max(30)), reader).0;
        if let Some(span) = span.filter(|_| secs < grace) {
            let message = format!("`{secs}` is shorter than the grace of {grace} seconds");
            let hint = "not below `reconnection_grace_secs`: a socket may still be needed for late answers";
            reader.error_hint(code::OUT_OF_RANGE, span, message, hint);
        }
        secs
    }

    fn lower_path(&mut self, reader: &mut Reader<'_>) -> String {
        let Some(At { value: Text(path), span }) = self.path.take() else {
            return "/sessions".to_owned();
        };
        let good = path.starts_with('/')
            && path.len() > 1
            && !path.ends_with('/')
            && path.chars().all(|c| c.is_ascii_graphic() && !"?#%\\".contains(c));
        if !good {
            let message = format!("`{path}` is not a path");
            reader.error_hint(
                code::INVALID_VALUE,
                span,
                message,
                "write `/sessions`: no query, no `/` at the end",
            );
        }
        path
    }

    fn lower_tokens(&mut self, reader: &mut Reader<'_>) -> Vec<(SessionToken, Span)> {
        let tokens = self.tokens.take().map(|at| at.value).unwrap_or_default();
        tokens.into_iter().filter_map(|raw| lower_token(raw, reader)).collect()
    }
}

fn lower_token(raw: At<RawSessionToken>, reader: &mut Reader<'_>) -> Option<(SessionToken, Span)> {
    let At { value: RawSessionToken(bound), span } = raw;
    if let Some(token) = bound.token.as_ref().filter(|token| !token.value.fits_path) {
        let message = "the token cannot stand in the path of an address";
        let hint = "only visible ASCII without `/ ? # % \\`: make one with `openssl rand -hex 32`";
        reader.error_hint(code::WEAK_SECRET, token.span, message, hint);
    }
    let (token, hash) = (bound.token.as_ref(), bound.token_sha256.as_ref());
    let token = one_token(token, hash, span, &bound.unreadable, reader)?;
    let lowered = SessionToken {
        token: token.value,
        kinds: bound.kinds.map(|at| at.value),
        infobases: bound.infobases.map(|at| at.value),
        uids: bound.uids.map(|at| at.value),
    };
    Some((lowered, token.span))
}

fn lower_session_timeouts(
    sessions: Option<At<Named<KindName, raw::RawSessionOverride>>>,
    reader: &mut Reader<'_>,
) -> Vec<(Glob, Duration)> {
    let entries = sessions.map(|at| at.value.entries).unwrap_or_default();
    let timeouts = entries.into_iter().filter_map(|(name, raw)| {
        let glob = Glob::parse(&name.value, name.span, reader)?;
        let timeout = raw.timeout?;
        Some((glob, within(Some(timeout), TIMEOUTS, TIMEOUTS.0, reader).0))
    });
    timeouts.collect()
}
