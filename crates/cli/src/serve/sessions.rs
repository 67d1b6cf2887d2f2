//! Sessions of `serve`: starts their driver from the configuration.

use std::net::IpAddr;
use std::sync::Arc;

use anyhow::Context;
use jiff::Timestamp;
use serde_json::Value;
use toolgate_config::Config;
use toolgate_edge::guard::Browsers;
use toolgate_edge::sessions::{KnownToken, SessionListenerRules, Tokens};
use toolgate_gateway::{Clock, DriverEnvironment, Note, Records, SessionDriver};
use toolgate_session::{self as session, Millis, ShowcaseEntry};
use toolgate_store::Store;

use super::cache_file::CacheFile;
use super::{random, wire};

/// How many frames of the largest size may be unfinished at once.
const UNFINISHED: usize = 8;

/// Sessions while they are served.
pub(crate) struct Served {
    pub(crate) driver: Arc<SessionDriver>,
    /// How many bytes unfinished frames of all sockets may have together.
    pub(crate) max_unfinished: usize,
    records: Records,
}

impl Served {
    /// Closes every socket, and waits until all records are written.
    pub(crate) async fn stop(&self) {
        self.driver.stop();
        self.records.flush().await;
    }
}

/// Starts the driver of sessions; `None` if their listener is off.
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
    let environment = DriverEnvironment {
        record: Box::new(move |note| notes.note(note)),
        random: Box::new(|| random::bytes().ok().map(u128::from_be_bytes)),
        max_unregistered: (wire::bytes(config.limits.connections) / 2).max(1),
    };
    let driver =
        SessionDriver::start(config.sessions.settings.clone(), showcase, now(), environment);
    let max_unfinished = wire::bytes(config.sessions.frame).saturating_mul(UNFINISHED);
    if let Some(cache) = &cache {
        cache.keep_for(&driver);
    }
    Ok(Some(Served { driver, max_unfinished, records }))
}

/// Adds entries to the showcase of a store that no gateway uses; how many were added, and for how
/// many there was no room.
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

/// The stored showcase, unless it is turned off.
async fn showcase(config: &Config, store: &dyn Store) -> anyhow::Result<Vec<ShowcaseEntry>> {
    if !config.sessions.settings.showcase {
        return Ok(Vec::new());
    }
    Records::showcase(store).await.context("cannot read the showcase")
}

/// The rules for sockets of sessions.
pub(crate) fn rules(config: &Config, bound_to: IpAddr, https: bool) -> SessionListenerRules {
    let tokens = config.sessions.tokens.iter().map(|token| {
        let bounds = [&token.kinds, &token.infobases, &token.uids];
        let [kinds, infobases, uids] = bounds.map(Clone::clone);
        KnownToken::new(*token.token.as_bytes(), kinds, infobases, uids)
    });
    SessionListenerRules {
        guard: wire::guard(config, bound_to, Browsers::Local, https),
        path: config.sessions.path.clone(),
        tokens: Tokens::new(tokens.collect()),
        frame: wire::bytes(config.sessions.frame),
    }
}

/// The list for operators: every session, and every socket that has not registered.
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

fn now() -> Millis {
    Millis(u64::try_from(Timestamp::now().as_millisecond()).unwrap_or_default())
}
