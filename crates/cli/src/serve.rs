//! `toolgate serve`: the gateway from start to stop.
//!
//! Order: configuration, data folder, listeners, gateway, ready; then signals and changes of the
//! configuration until a stop; then the drain. Each step has its file under `serve/`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use jiff::Timestamp;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_config::Config;
use toolgate_gateway::{Admission, Gateway, Metrics};

use crate::args::ServeArgs;
use crate::exit::Done;
use crate::{exit, log, print};

mod access;
mod cache_file;
mod data;
#[cfg(debug_assertions)]
mod failpoint;
mod fd_limit;
mod listeners;
mod random;
mod reload;
mod session_metrics;
mod sessions;
mod source;
mod start_text;
mod store;
mod unsafe_start;
mod wire;

use access::{PolicyFiles, access};
use data::DataFolder;
use listeners::{Bound, Listeners};
use reload::{Active, Reload};
use source::Source;
use start_text::Door;
use wire::Wiring;

/// How often idle agent sessions and children are looked for.
const SWEEP: Duration = Duration::from_secs(5);
/// How often the store is told the time.
const TICK: Duration = Duration::from_secs(1);
/// How long children and connections may take to end after the drain.
const FAREWELL: Duration = Duration::from_secs(10);

pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<Done> {
    log::start(args.log)?;
    let source = Source::find(args.config.as_deref());
    let text = source.text();
    let config = source.load()?;
    let reasons = unsafe_start::reasons(&config);
    if !reasons.is_empty() {
        bail!("toolgate does not start like this:\n  - {}", reasons.join("\n  - "));
    }
    if args.policy.is_some() && !config.grants.is_empty() {
        let why = "`--policy` is for calls without a token, and with `grants` there are none: give \
                   the grants their policy in the configuration";
        return Err(exit::Usage(why.to_owned()).into());
    }
    fd_limit::raise();
    #[cfg(debug_assertions)]
    failpoint::arm()?;
    let data = DataFolder::open(data_path(args.data.as_deref(), &config)?, &random::token)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(serve(args, source, text, config, &data))
}

async fn serve(
    args: &ServeArgs,
    source: Source,
    text: Option<Vec<u8>>,
    config: Config,
    data: &DataFolder,
) -> anyhow::Result<Done> {
    let mut signals = Signals::new()?;
    let listeners = Listeners::bind(&config).await?;
    let bound = listeners.bound(&config)?;

    let (store, secret) = store::open(data.path(), &config.audit)?;
    let (ids, clock) = (Arc::new(random::SystemIds), Arc::new(store::SystemClock));
    let writing = store::writing(&config.audit, &secret);
    let (keeper, id_source) = (Arc::clone(&store), Arc::clone(&ids));
    let admission = Arc::new(Admission::new(keeper, Arc::clone(&clock) as _, id_source, writing));
    let policies = PolicyFiles::read(&config, args.policy.as_deref());
    let in_force = access(&config, args.policy.as_deref(), &policies);
    admission.set_access(in_force.map_err(|why| anyhow!("a policy cannot be used:\n{why}"))?);

    let metrics = Metrics::default();
    let children = TaskTracker::new();
    let wiring = Wiring::new(metrics.clone(), children.clone());
    let limits = wire::agent_sessions(&config);
    let gateway = Gateway::new(ids, metrics.clone(), limits.clone(), admission);
    let servers = config.servers.iter().map(|server| wiring.server(server, &config.limits));
    gateway.apply(servers.collect::<anyhow::Result<_>>()?, limits);

    let sessions = sessions::start(&config, &store, clock).await?;
    if let Some(sessions) = &sessions {
        gateway.set_sessions(Arc::clone(&sessions.board) as _);
        gateway.set_session_classes(sessions::classes(&config));
    }

    let ready = Arc::new(AtomicBool::new(false));
    let stop = CancellationToken::new();
    let serving = TaskTracker::new();
    let board = sessions.as_ref().map(|sessions| &sessions.board);
    let served = listeners.serve(&config, &gateway, board, &ready, &serving, &stop);
    let grace = config.shutdown_grace;
    let announcement = announcement(args, &source, &config, data, &bound);
    // Whoever hears that it is ready may edit the configuration at once.
    let active = Active { config, text, policies, local_policy: args.policy.clone(), secret };
    let mut reload = Reload::new(source, active, wiring, Arc::clone(&gateway), served);
    ready.store(true, Ordering::Relaxed);
    print::err(&announcement);
    if args.ready_json {
        print::out(&format!("{}\n", bound.ready_line()));
    }

    let mut sweep = tokio::time::interval(SWEEP);
    let mut tick = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            told = signals.next() => match told {
                Told::Stop => break,
                Told::Reload => reload.now(),
            },
            () = reload.changed() => reload.if_changed(),
            _ = sweep.tick() => gateway.sweep(),
            _ = tick.tick() => store.tick(Timestamp::now()),
        }
    }

    tracing::info!("stopping");
    ready.store(false, Ordering::Relaxed);
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
    if let Err(error) = store.close(Timestamp::now()).await {
        tracing::error!(%error, "the audit could not be closed; its last outcomes will be unknown");
    }
    tracing::info!("stopped");
    Ok(Done::Ok)
}

/// The data folder as `serve` with the same flags would find it.
pub(crate) fn find_data(data: Option<&Path>, config: Option<&Path>) -> anyhow::Result<PathBuf> {
    match data {
        Some(data) => Ok(data.to_owned()),
        None => data_path(None, &Source::find(config).load()?),
    }
}

fn data_path(data: Option<&Path>, config: &Config) -> anyhow::Result<PathBuf> {
    if let Some(path) = data.map(Path::to_owned).or_else(|| config.data.clone()) {
        return Ok(path);
    }
    let path = |name| std::env::var_os(name).map(PathBuf::from);
    data::default_path(path("XDG_DATA_HOME"), path("HOME"))
}

fn door(config: &Config, args: &ServeArgs) -> Door {
    match (&args.policy, config.grants.len()) {
        (_, count) if count > 0 => Door::Granted(count),
        _ if !access::may_be_local(config) => Door::Closed,
        (Some(policy), _) => Door::LocalUnder(policy.clone()),
        (None, _) => Door::Local,
    }
}

fn announcement(
    args: &ServeArgs,
    source: &Source,
    config: &Config,
    data: &DataFolder,
    bound: &Bound,
) -> String {
    let servers: Vec<String> = config.servers.iter().map(|server| server.name.clone()).collect();
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path: Vec<PathBuf> = std::env::split_paths(&path).collect();
    start_text::text(&start_text::Start {
        mcp: bound.mcp.as_deref(),
        sessions: bound.sessions.as_deref(),
        admin: bound.admin.as_deref(),
        admin_token: &data.admin_token(),
        config: source.file().map(Path::new),
        servers: &servers,
        door: &door(config, args),
        clients: &start_text::Client::found(home.as_deref(), &path),
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
