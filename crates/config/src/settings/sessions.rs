//! `sessions`: programs that connect over WebSocket and publish tools.

mod kind;
mod raw;

use std::path::PathBuf;
use std::time::Duration;

use toolgate_policy::Glob;
use toolgate_session::{SchemaConflict, Selectors, SessionSettings};

pub(crate) use self::raw::RawSessions;
use self::raw::{KindName, RawSessionToken};
use super::grants::globs;
use super::servers::Pin;
use super::tools::TIMEOUTS;
use crate::finding::Span;
use crate::problem::code;
use crate::reader::{At, Named, Reader};
use crate::value::{
    Keyword, Pattern, Period, Size, Switch, Text, TokenHash, Whole, Word, one_token, within,
};

/// The default of `frame`.
const FRAME: Size = Size::mib(16);

/// Sessions: programs that connect over WebSocket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionsConfig {
    /// The path of the WebSocket; begins with `/` and does not end with it.
    pub path: String,
    /// Accepted tokens; if empty, every program that reaches the listener may connect.
    pub tokens: Vec<SessionToken>,
    /// The largest WebSocket frame, bytes.
    pub frame: u64,
    /// A `tools_cache.json` that is imported and kept up to date; only from a drop-in
    /// configuration.
    pub cache_file: Option<PathBuf>,
    /// What happens when a tool's definition is new or changes.
    pub pin: Pin,
    /// The settings of the session machine. Its `servers` are those of the file.
    pub settings: SessionSettings,
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

impl Keyword for SchemaConflict {
    const WORDS: &'static [(&'static str, Self)] =
        &[("merged", Self::Merged), ("oneof", Self::OneOf)];
}

impl Keyword for Selectors {
    const WORDS: &'static [(&'static str, Self)] =
        &[("session_id", Self::SessionId), ("any", Self::Any)];
}

impl RawSessions {
    /// The section, with the position of each token.
    pub(crate) fn lower(
        mut self,
        servers: &[String],
        reader: &mut Reader<'_>,
    ) -> (SessionsConfig, Vec<(TokenHash, Span)>) {
        let tokens = self.lower_tokens(reader);
        let config = SessionsConfig {
            path: self.lower_path(reader),
            frame: within(self.frame.take(), (Size::kib(64), Size::mib(256)), FRAME, reader).0,
            cache_file: None,
            pin: self.pin.take().map_or(Pin::Off, |at| at.value),
            settings: self.lower_settings(servers, reader),
            tokens: tokens.iter().map(|(token, _)| token.clone()).collect(),
        };
        (config, tokens.into_iter().map(|(token, span)| (token.token, span)).collect())
    }

    fn lower_settings(mut self, servers: &[String], reader: &mut Reader<'_>) -> SessionSettings {
        let default = SessionSettings::default();
        let millis = |written: Option<At<Whole>>, least, default, reader: &mut Reader<'_>| {
            let bounds = (Whole(least), Whole(3_600_000));
            let default = Whole(u64::try_from(Duration::as_millis(&default)).unwrap_or(u64::MAX));
            Duration::from_millis(within(written, bounds, default, reader).0)
        };
        let interval = default.ping_interval.unwrap_or_default();
        let interval = millis(self.ws_ping_interval_ms.take(), 0, interval, reader);
        let secs = (Whole(0), Whole(86_400));
        let grace = self.reconnection_grace_secs.take();
        let grace = within(grace, secs, Whole(default.grace.as_secs()), reader).0;
        let life = (Period::secs(60), Period::days(3650));
        let life =
            within(self.cache_life_period.take(), life, Period(default.showcase_life), reader);
        let (common, kinds) = self.lower_kinds(reader);
        let flag = |written: Option<At<Switch>>, default| written.map_or(default, |at| at.value.0);
        SessionSettings {
            ping_interval: (!interval.is_zero()).then_some(interval),
            dead_after: millis(self.ws_ping_timeout_ms.take(), 100, default.dead_after, reader),
            heartbeat_interval: millis(
                self.heartbeat_interval_ms.take(),
                0,
                default.heartbeat_interval,
                reader,
            ),
            register_within: self.lower_register_within(grace, default.register_within, reader),
            grace: Duration::from_secs(grace),
            shutdown_grace: millis(
                self.graceful_kill_grace_ms.take(),
                0,
                default.shutdown_grace,
                reader,
            ),
            rebind: flag(self.rebind.take(), default.rebind),
            ascii_names: flag(self.ascii_names.take(), default.ascii_names),
            selectors: self.lower_selectors(reader),
            conflict: self.conflict.take().map_or(default.conflict, |at| at.value.0),
            showcase: flag(self.cache.take(), default.showcase),
            showcase_life: life.0,
            reported_idle_secs: self.reported_idle_secs.take().map(|at| at.value.0),
            servers: servers.to_vec(),
            common,
            kinds,
            session_timeouts: lower_session_timeouts(self.session_ids, reader),
            ..default
        }
    }

    /// The default is the grace period; a shorter one would close sockets that may still re-bind.
    fn lower_register_within(
        &mut self,
        grace: u64,
        default: Duration,
        reader: &mut Reader<'_>,
    ) -> Duration {
        let written = self.register_within_secs.take();
        let span = written.as_ref().map(|at| at.span);
        let default = Whole(grace.max(default.as_secs()));
        let secs = within(written, (Whole(1), Whole(86_400)), default, reader).0;
        if let Some(span) = span.filter(|_| secs < grace) {
            let message = format!("`{secs}` is shorter than the grace of {grace} seconds");
            let hint = "not below `reconnection_grace_secs`: a socket may still be needed for late answers";
            reader.error_hint(code::OUT_OF_RANGE, span, message, hint);
        }
        Duration::from_secs(secs)
    }

    /// With `oneof`, each branch is recognised by its `session_id`, so none can be left out.
    fn lower_selectors(&mut self, reader: &mut Reader<'_>) -> Selectors {
        let Some(At { value: Word(selectors), span }) = self.selectors.take() else {
            return SessionSettings::default().selectors;
        };
        let one_of = self.conflict.as_ref().is_some_and(|at| at.value.0 == SchemaConflict::OneOf);
        if selectors == Selectors::Any && one_of {
            let message = "`selectors: any` cannot be combined with `conflict: oneof`";
            let hint = "write `conflict: merged`: each branch of `oneof` requires `session_id`";
            reader.error_hint(code::CONFLICT, span, message, hint);
        }
        selectors
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
        let message = "the token has characters that a path cannot have";
        let hint = "only visible ASCII without `/ ? # % \\`: make one with `openssl rand -hex 32`";
        reader.error_hint(code::WEAK_SECRET, token.span, message, hint);
    }
    let (token, hash) = (bound.token.as_ref(), bound.token_sha256.as_ref());
    let token = one_token(token, hash, span, &bound.unreadable, reader)?;
    let lowered = SessionToken {
        token: token.value,
        kinds: bound.kinds.map(globs),
        infobases: bound.infobases.map(globs),
        uids: bound.uids.map(globs),
    };
    Some((lowered, token.span))
}

fn lower_session_timeouts(
    sessions: Option<At<Named<KindName, raw::RawSessionOverride>>>,
    reader: &mut Reader<'_>,
) -> Vec<(Glob, Duration)> {
    let entries = sessions.map(|at| at.value.entries).unwrap_or_default();
    let timeouts = entries.into_iter().filter_map(|(name, raw)| {
        let Pattern(glob) = Pattern::parse(&name.value, name.span, reader)?;
        let timeout = raw.timeout?;
        Some((glob, within(Some(timeout), TIMEOUTS, TIMEOUTS.0, reader).0))
    });
    timeouts.collect()
}
