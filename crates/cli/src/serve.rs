//! `toolgate serve`: the gateway from start to stop.
//!
//! Order: configuration, data folder, listeners, gateway, ready; then signals and changes of the
//! configuration until a stop; then the drain. Each step has its file under `serve/`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::args::ServeArgs;
use crate::exit::Done;
use crate::policy::visible;
use crate::{exit, log, print};
use anyhow::{Context, anyhow, bail};
use jiff::Timestamp;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_audit::{Draft, RowKind};
use toolgate_config::{Config, Listen};
use toolgate_edge::listen::Front;
use toolgate_edge::tls::Tls;
use toolgate_session::ShowcaseEntry;
use toolgate_store::Change;

mod access;
mod api;
mod cache_file;
mod certificate;
mod checkpoints;
mod core_dumps;
mod data;
mod edits;
mod entries;
#[cfg(debug_assertions)]
mod failpoint;
mod fd_limit;
mod folder;
mod listeners;
mod literals;
mod random;
mod reload;
mod session_metrics;
mod sessions;
mod setup;
mod source;
mod start_text;
mod store;
mod unsafe_start;
mod view;
mod wire;

use access::{FileSide, PolicyFiles};
pub(crate) use certificate::Here;
pub(crate) use checkpoints::read as read_checkpoints;
use data::DataFolder;
pub(crate) use data::{announced, check_folder, client_of, is_announced, read_token};
pub(crate) use folder::{
    config_file, errors_of, file_side, grant as grant_of_folder, said_class, session_tool,
};
use listeners::{Behind, Bound, Listeners};
pub(crate) use random::token as new_token;
use reload::{Active, Reload};
use setup::Summary;
use source::Source;
use start_text::Door;

/// How often idle agent sessions and children are looked for.
const SWEEP: Duration = Duration::from_secs(5);
/// How often the store is told the time and asked whether something has changed. A change of another
/// process is seen with the second tick after it at the latest, which is within a second.
const TICK: Duration = Duration::from_millis(400);
const POLICY_FOR_NOBODY: &str = "`--policy` is for calls without a token, and with grants there are \
                                 none: give the grants their policy";
/// How long children and connections may take to end after the drain.
const FAREWELL: Duration = Duration::from_secs(10);

pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<Done> {
    log::start(args.log)?;
    core_dumps::off();
    let source = Source::find(args.config.as_deref());
    let text = source.text();
    let config = source.load()?;
    let folder = data_path(args.data.as_deref(), &config)?;
    // Whether grants are kept is known for sure once the store is open.
    refuse_unsafe(&config, &config.listen, folder.join("toolgate.db").exists())?;
    if args.policy.is_some() && !config.grants.is_empty() {
        return Err(exit::Usage(POLICY_FOR_NOBODY.to_owned()).into());
    }
    fd_limit::raise();
    #[cfg(debug_assertions)]
    failpoint::arm()?;
    let is_first = !folder.join("audit.key").exists();
    let data = DataFolder::open(folder, &random::token)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(serve(args, source, text, config, (&data, is_first)))
}

fn refuse_unsafe(config: &Config, listen: &Listen, kept_grants: bool) -> anyhow::Result<()> {
    let reasons = unsafe_start::reasons(config, listen, kept_grants);
    if !reasons.is_empty() {
        bail!("toolgate does not start like this:\n  - {}", reasons.join("\n  - "));
    }
    Ok(())
}

async fn serve(
    args: &ServeArgs,
    source: Source,
    text: Option<Vec<u8>>,
    config: Config,
    (data, is_first): (&DataFolder, bool),
) -> anyhow::Result<Done> {
    let mut signals = Signals::new()?;
    let tls = certificate::load(&config)?.map(Tls::new);
    let listeners = Listeners::bind(&config).await?;
    let bound = listeners.bound(&config, tls)?;

    let (store, secret) = store::open(data.path(), &config.audit)?;
    let stop = CancellationToken::new();
    let children = TaskTracker::new();
    let parts = api::Parts { store: &store, secret: &secret, data, bound: &bound, stop: &stop };
    let setup = api::setup(&parts, &config, &children)?;
    let gateway = Arc::clone(&setup.gateway);
    let policies = PolicyFiles::read(&config, args.policy.as_deref());
    let local_policy = args.policy.clone();
    let file = FileSide { config: config.clone(), policies, local_policy };
    let put = setup.replace_file(file.clone()).await;
    put.map_err(|why| anyhow!("a policy cannot be used:\n{why}"))?;
    refuse_unsafe(&config, &setup.bound, setup.has_kept_grants().await)?;
    let summary = setup.summary().await;
    if args.policy.is_some() && !summary.local && summary.grants > 0 {
        return Err(exit::Usage(POLICY_FOR_NOBODY.to_owned()).into());
    }

    let sessions = sessions::start(&config, &store, Arc::new(store::SystemClock)).await?;
    if let Some(sessions) = &sessions {
        gateway.set_sessions(Arc::clone(&sessions.board) as _);
        gateway.set_session_classes(sessions::classes(&config));
    }

    let ready = Arc::new(AtomicBool::new(false));
    let serving = TaskTracker::new();
    let board = sessions.as_ref().map(|sessions| &sessions.board);
    let api = toolgate_admin::router(Arc::clone(&setup.admin));
    let front = Front::start().context("cannot start the thread that accepts connections")?;
    let behind = Behind { gateway: &gateway, admin: &setup.admin, api: &api, board, front: &front };
    let served = listeners.serve(&config, &bound, &behind, &ready, &serving, &stop);
    let grace = config.shutdown_grace;
    let new_key = if is_first { toolgate_store_sqlite::public_key(data.path()).ok() } else { None };
    let new_key = new_key.map(|key| key.fingerprint());
    let said = Said { tokens: !config.sessions.tokens.is_empty(), new_key: new_key.as_deref() };
    let announcement = announcement(args, &source, &summary, data, &bound, &said);
    // Whoever hears that it is ready may edit the configuration at once.
    let certificate = certificate::Held::read(&config);
    let active = Active { file, text, certificate, secret };
    let mut reload = Reload::new(source, active, Arc::clone(&setup), served).await;
    ready.store(true, Ordering::Relaxed);
    let mut announced = data.announce(&bound.kept_line())?;
    print::err(&visible(&announcement));
    if args.ready_json {
        print::out(&format!("{}\n", bound.ready_line()));
    }

    let mut sweep = tokio::time::interval(SWEEP);
    let mut tick = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            told = signals.next() => match told {
                Told::Stop => break,
                Told::Reload => {
                    reload.now().await;
                    announced.renew(data, &bound.kept_line());
                }
            },
            () = reload.changed() => {
                reload.if_changed().await;
                announced.renew(data, &bound.kept_line());
            }
            _ = sweep.tick() => gateway.sweep(),
            _ = tick.tick() => {
                // What cannot be put in force is in the log.
                drop(setup.refresh().await);
                store.tick(Timestamp::now());
            }
        }
    }

    tracing::info!("stopping");
    ready.store(false, Ordering::Relaxed);
    drop(announced);
    stop.cancel();
    tokio::select! {
        () = gateway.drain(grace) => {}
        () = signals.stop() => {
            tracing::warn!("told twice to stop: not waiting any more");
            // With the runtime its tasks end, and with them all children.
            return Ok(Done::Ok);
        }
    }
    if let Some(sessions) = &sessions {
        sessions.stop().await;
    }
    serving.close();
    children.close();
    let farewell = async { tokio::join!(serving.wait(), children.wait()) };
    if tokio::time::timeout(FAREWELL, farewell).await.is_err() {
        tracing::warn!("something did not end in time and is left behind");
    }
    gateway.admission().strangers().flush();
    match tokio::time::timeout(FAREWELL, store.close(Timestamp::now())).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::error!(%error, "the audit could not be closed; its last outcomes will be unknown");
        }
        Err(_) => tracing::error!("the audit is not closed: its disk does not answer"),
    }
    tracing::info!("stopped");
    Ok(Done::Ok)
}

/// Puts entries into the showcase of the data folder that `serve` would use; the folder, how many
/// were put there, and how many it had no room for. Nobody may serve from it: he would not see them.
pub(crate) fn take_over(
    data: Option<&Path>,
    config: &Config,
    entries: &[ShowcaseEntry],
) -> anyhow::Result<(PathBuf, usize, usize)> {
    let data = DataFolder::open(data_path(data, config)?, &random::token)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let (store, _) = store::open(data.path(), &config.audit)?;
    let (new, left_out) = runtime.block_on(async {
        let new = sessions::take_over(&store, entries).await?;
        store.close(Timestamp::now()).await.context("cannot close the audit")?;
        anyhow::Ok(new)
    })?;
    Ok((data.path().to_owned(), new, left_out))
}

/// Takes the clock as it is now, in a data folder from which nobody serves.
pub(crate) fn accept_clock(folder: PathBuf) -> anyhow::Result<()> {
    anyhow::ensure!(folder.join("toolgate.db").exists(), "`{}` holds no data", folder.display());
    let data = DataFolder::open(folder, &random::token)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        let (store, _) = store::open(data.path(), &Config::default().audit)?;
        let (before, now) = (store.status().await?.mark, Timestamp::now());
        let mut row = Draft::new(RowKind::Admin, now);
        // Whoever can write to the folder has the token of this person.
        row.person = Some("admin".into());
        let why = if before > now {
            format!("accepted the clock: {now:.0} is the time, and not {before:.0}")
        } else {
            format!("accepted the clock: {now:.0}; it was not behind")
        };
        row.message = Some(why.into());
        if before > now {
            store.change(Change::AcceptClock, row).await?;
        } else {
            // Windows that are over must not come back.
            store.record(row).await?;
        }
        store.close(Timestamp::now()).await.context("cannot close the audit")
    })
}

/// The data folder as `serve` with the same flags would find it.
pub(crate) fn find_data(data: Option<&Path>, config: Option<&Path>) -> anyhow::Result<PathBuf> {
    match data {
        Some(data) => Ok(data.to_owned()),
        None => data_or_default(Source::find(config).data()?),
    }
}

fn data_path(data: Option<&Path>, config: &Config) -> anyhow::Result<PathBuf> {
    data_or_default(data.map(Path::to_owned).or_else(|| config.data.clone()))
}

fn data_or_default(named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    if let Some(path) = named {
        return Ok(path);
    }
    let path = |name| std::env::var_os(name).map(PathBuf::from);
    data::default_path(path("XDG_DATA_HOME"), path("HOME"))
}

fn door(summary: &Summary, args: &ServeArgs) -> Door {
    match (&args.policy, summary.local, summary.grants) {
        (None, true, _) => Door::Local,
        (Some(policy), true, _) => Door::LocalUnder(policy.clone()),
        (_, false, 0) => Door::Closed,
        (_, false, count) => Door::Granted(count),
    }
}

/// What else the start text has to say.
struct Said<'a> {
    /// Whether programs need a token to dial in.
    tokens: bool,
    /// The fingerprint of a new key of the audit.
    new_key: Option<&'a str>,
}

fn announcement(
    args: &ServeArgs,
    source: &Source,
    summary: &Summary,
    data: &DataFolder,
    bound: &Bound,
    said: &Said<'_>,
) -> String {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path: Vec<PathBuf> = std::env::split_paths(&path).collect();
    start_text::text(&start_text::Start {
        mcp: bound.mcp.as_deref(),
        sessions: bound.sessions.as_deref(),
        admin: bound.admin.as_deref(),
        admin_token: &data.admin_token(),
        config: source.file().map(Path::new),
        servers: &summary.servers,
        door: &door(summary, args),
        clients: &start_text::Client::found(home.as_deref(), &path),
        session_tokens: said.tokens,
        new_key: said.new_key,
    })
}

/// What the system tells a running gateway.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Stop,
    Reload,
}

impl Signals {
    fn new() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen to signals");
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.terminate.recv() => Told::Stop,
            _ = self.interrupt.recv() => Told::Stop,
            _ = self.hang_up.recv() => Told::Reload,
        }
    }

    async fn stop(&mut self) {
        while self.next().await != Told::Stop {}
    }
}
