//! Sessions of `serve`: from what the configuration says to what drives them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use anyhow::Context;
use jiff::Timestamp;
use serde_json::{Map, Value};
use toolgate_config::{Config, Glob, Idle, KindSettings, SchemaConflict, SessionFilter};
use toolgate_edge::guard::Browsers;
use toolgate_edge::sessions::{DoorRules, KnownToken, Outside, Switchboard, Tokens};
use toolgate_gateway::{Clock, Note, Records, SessionClasses};
use toolgate_policy::Class;
use toolgate_session::{
    self as session, Millis, Reach, SessionSettings, ShowcaseEntry, ToolSettings,
};
use toolgate_store::Store;

use super::cache_file::CacheFile;
use super::{random, wire};

/// How many frames of the largest size may be unfinished at once.
const UNFINISHED: usize = 8;

/// Sessions while they are served.
pub(crate) struct Served {
    pub(crate) board: Arc<Switchboard>,
    records: Records,
}

impl Served {
    /// Closes every socket, and waits until what happened is written.
    pub(crate) async fn stop(&self) {
        self.board.stop();
        self.records.flush().await;
    }
}

/// Starts what drives sessions; none where their listener is off.
pub(crate) async fn start(
    config: &Config,
    store: &Arc<dyn Store>,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Option<Served>> {
    if config.listen.sessions.is_none() {
        return Ok(None);
    }
    let mut showcase = showcase(config, store.as_ref()).await?;
    let cache = config.sessions.cache_file.as_deref().and_then(CacheFile::open);
    let written = cache.as_ref().map(CacheFile::upkeep);
    let records = Records::start(Arc::clone(store), clock, written.unwrap_or(Box::new(|| {})));
    let new = cache.as_ref().map(|cache| cache.new_to(&showcase)).unwrap_or_default();
    let kept = new.iter().map(|entry| (entry.key.clone(), Some(Arc::new(entry.clone()))));
    records.note(Note::Showcase(kept.collect()));
    showcase.extend(new);
    let notes = records.clone();
    let outside = Outside {
        note: Box::new(move |note| notes.note(note)),
        random: Box::new(|| random::bytes().ok().map(u128::from_be_bytes)),
        unregistered: (wire::bytes(config.limits.connections) / 2).max(1),
        unfinished: wire::bytes(config.sessions.frame).saturating_mul(UNFINISHED),
    };
    let board = Switchboard::start(settings(config), showcase, now(), outside);
    if let Some(cache) = &cache {
        cache.keep_for(&board);
    }
    Ok(Some(Served { board, records }))
}

/// Puts entries into the showcase of a store that nobody serves from; how many were put there, and
/// how many it had no room for.
pub(crate) async fn take_over(
    store: &Arc<dyn Store>,
    entries: &[ShowcaseEntry],
) -> anyhow::Result<(usize, usize)> {
    let known = Records::showcase(store.as_ref()).await.context("cannot read the showcase")?;
    let (new, left_out) = session::new_to(&known, entries, session::ShowcaseLimits::default());
    let count = new.len();
    let kept = Records::keep(store.as_ref(), new, Timestamp::now()).await;
    kept.context("cannot write the showcase")?;
    Ok((count, left_out))
}

/// What the store has kept, as far as it is wanted.
async fn showcase(config: &Config, store: &dyn Store) -> anyhow::Result<Vec<ShowcaseEntry>> {
    if !config.sessions.cache {
        return Ok(Vec::new());
    }
    Records::showcase(store).await.context("cannot read the showcase")
}

/// What the machine of sessions is told.
pub(crate) fn settings(config: &Config) -> SessionSettings {
    let sessions = &config.sessions;
    let kinds = sessions.kinds.iter().map(|(name, own)| (name.clone(), kind(own)));
    SessionSettings {
        reported_idle_secs: sessions.reported_idle_secs,
        heartbeat_interval: sessions.heartbeat_interval,
        ping_interval: sessions.ws_ping_interval,
        dead_after: sessions.ws_ping_timeout,
        register_within: sessions.register_within,
        grace: sessions.reconnection_grace,
        shutdown_grace: sessions.graceful_kill_grace,
        rebind: sessions.rebind,
        ascii_names: sessions.ascii_names,
        conflict: match sessions.conflict {
            SchemaConflict::Merged => session::SchemaConflict::Merged,
            SchemaConflict::Oneof => session::SchemaConflict::OneOf,
        },
        showcase: sessions.cache,
        showcase_life: sessions.cache_life_period,
        // The gateway says which servers there are, also those of the store.
        servers: config.servers.iter().map(|server| server.name.clone()).collect(),
        common: kind(&sessions.common),
        kinds: kinds.collect(),
        session_timeouts: sessions
            .session_timeouts
            .iter()
            .map(|(of, timeout)| (glob(of), *timeout))
            .collect(),
        ..SessionSettings::default()
    }
}

fn kind(config: &KindSettings) -> session::KindSettings {
    // The kind's own word comes first, and counts.
    let mut tools = std::collections::BTreeMap::new();
    for tool in &config.tools {
        let concurrency = tool.concurrency.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        let said = ToolSettings { timeout: tool.timeout, concurrency };
        tools.entry(tool.name.clone()).or_insert(said);
    }
    session::KindSettings {
        reconnect_wait: config.reconnect_wait,
        idle_timeout: config.idle_timeout,
        idle: match config.idle {
            Idle::Hide => session::Idle::Hide,
            Idle::Shutdown => session::Idle::Shutdown,
        },
        queue: wire::bytes(config.queue),
        late_answer: config.late_answer,
        identifier_keys: config.identifier_keys,
        timeout: config.timeout,
        no_deadline: config.no_deadline,
        tools,
    }
}

/// The operator's word about the risk of single tools, of each kind its own.
pub(crate) fn classes(config: &Config) -> SessionClasses {
    let sessions = &config.sessions;
    let kinds = sessions.kinds.iter();
    SessionClasses {
        common: classes_of(&sessions.common),
        kinds: kinds.map(|(name, kind)| (name.clone(), classes_of(kind))).collect(),
    }
}

/// The kind's own word comes first, before that about all kinds.
fn classes_of(kind: &KindSettings) -> HashMap<String, Class> {
    let mut classes = HashMap::new();
    for tool in &kind.tools {
        if let Some(class) = tool.class {
            classes.entry(tool.name.clone()).or_insert(wire::class(class));
        }
    }
    classes
}

/// Who may dial in, and how.
pub(crate) fn rules(config: &Config, bound_to: IpAddr, https: bool) -> DoorRules {
    let tokens = config.sessions.tokens.iter().map(|token| {
        let bounds = [&token.kinds, &token.infobases, &token.uids];
        let [kinds, infobases, uids] = bounds.map(|bound| bound.as_deref().map(globs));
        KnownToken::new(*token.token.as_bytes(), kinds, infobases, uids)
    });
    DoorRules {
        guard: wire::guard(config, bound_to, Browsers::Local, https),
        path: config.sessions.path.clone(),
        tokens: Tokens::new(tokens.collect()),
        frame: wire::bytes(config.sessions.frame),
    }
}

/// Which sessions a grant may reach.
pub(crate) fn reach(filter: &SessionFilter) -> Arc<Reach> {
    let SessionFilter { infobase_name, kind, session_id } = filter;
    Arc::new(Reach {
        infobase_name: infobase_name.as_deref().map(globs),
        kind: kind.as_deref().map(globs),
        session_id: session_id.as_deref().map(globs),
    })
}

/// The same as the store keeps it. What cannot be read reaches nothing.
pub(crate) fn kept_reach(json: &str) -> Arc<Reach> {
    let kept: Option<Map<String, Value>> = serde_json::from_str(json).ok();
    let Some(kept) = kept else {
        return Arc::new(Reach { session_id: Some(Vec::new()), ..Reach::default() });
    };
    let list = |key: &str| {
        let given = kept.get(key).filter(|value| !value.is_null())?;
        let words = given.as_array().into_iter().flatten().filter_map(Value::as_str);
        Some(words.map(session::Glob::new).collect())
    };
    Arc::new(Reach {
        infobase_name: list("infobase_name"),
        kind: list("kind"),
        session_id: list("session_id"),
    })
}

/// What people see: every session, and every socket on which nobody has registered.
pub(crate) fn items(list: &Value) -> Vec<Value> {
    let of = |key: &str| list.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut items = of("sessions");
    items.extend(of("anonymous").into_iter().map(|mut socket| {
        if let Some(socket) = socket.as_object_mut() {
            socket.insert("session_id".to_owned(), Value::Null);
            socket.insert("state".to_owned(), "anonymous".into());
        }
        socket
    }));
    items
}

fn globs(patterns: &[Glob]) -> Vec<session::Glob> {
    patterns.iter().map(glob).collect()
}

fn glob(pattern: &Glob) -> session::Glob {
    session::Glob::new(pattern.as_str())
}

fn now() -> Millis {
    Millis(u64::try_from(Timestamp::now().as_millisecond()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_reach_is_as_narrow_as_it_was_given() {
        let cases = [
            ("{}", [true, true]),
            (r#"{"infobase_name":["trade_*"],"kind":null}"#, [true, false]),
            (r#"{"infobase_name":["trade_*"],"kind":["server"]}"#, [false, false]),
            (r#"{"session_id":[]}"#, [false, false]),
            ("not json", [false, false]),
            ("[]", [false, false]),
        ];
        for (json, expected) in cases {
            let reach = kept_reach(json);
            let bases = ["trade_dev", "stock"];
            assert_eq!(bases.map(|base| reach.allows("u1", "client", base)), expected, "{json}");
        }
    }
}
