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
use toolgate_config::{Config, Listen};
use toolgate_control::{FileState, Inputs, PolicyFiles, Summary, unsafe_start, visible};
use toolgate_edge::listen::Front;
use toolgate_edge::tls::Tls;
use toolgate_store::Store;

use crate::args::ServeArgs;
use crate::config_source::Source;
use crate::data::{DataFolder, data_path};
use crate::exit::Done;
use crate::{exit, log, print};

mod api;
mod cache_file;
mod certificate;
mod checkpoints;
mod core_dumps;
#[cfg(debug_assertions)]
mod failpoint;
mod fd_limit;
mod listeners;
mod maintenance;
mod random;
mod reload;
mod session_metrics;
mod sessions;
mod start_text;
mod store;
mod watch;
mod wire;

pub(crate) use checkpoints::read as read_checkpoints;
use listeners::{Behind, Bound, Listeners};
pub(crate) use maintenance::{accept_clock, take_over};
pub(crate) use random::token as new_token;
use reload::{Active, Reload};
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
    let (config, inputs) = source.load_with_inputs()?;
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
    runtime.block_on(serve(args, source, inputs, config, (&data, is_first)))
}

fn refuse_unsafe(config: &Config, listen: &Listen, stored_grants: bool) -> anyhow::Result<()> {
    let reasons = unsafe_start::reasons(config, listen, stored_grants);
    if !reasons.is_empty() {
        let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
        bail!("toolgate does not start like this:\n  - {}", reasons.join("\n  - "));
    }
    Ok(())
}

async fn serve(
    args: &ServeArgs,
    source: Source,
    mut inputs: Inputs,
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
    let (control, admin) = api::control(&parts, &config, &children)?;
    let gateway = Arc::clone(control.gateway());
    let policies = PolicyFiles::read(&config, args.policy.as_deref(), &mut inputs);
    let local_policy = args.policy.clone();
    let file = FileState { config: config.clone(), policies, local_policy };
    let applied = control.replace_file(file.clone()).await;
    applied.map_err(|why| anyhow!("a policy cannot be used:\n{why}"))?;
    let summary = control.summary().await;
    refuse_unsafe(&config, control.bound(), summary.has_stored_grants)?;
    if args.policy.is_some() && !summary.local && summary.grants > 0 {
        return Err(exit::Usage(POLICY_FOR_NOBODY.to_owned()).into());
    }

    let sessions = sessions::start(&config, &store, Arc::new(store::SystemClock)).await?;
    if let Some(sessions) = &sessions {
        gateway.set_dial_in(Arc::clone(&sessions.driver));
        gateway.set_session_classes(toolgate_control::session_settings::classes(&config));
    }

    let ready = Arc::new(AtomicBool::new(false));
    let serving = TaskTracker::new();
    let api = toolgate_admin::router(Arc::clone(&admin));
    let front = Front::start().context("cannot start the thread that accepts connections")?;
    let behind = Behind {
        gateway: &gateway,
        admin: &admin,
        api: &api,
        sessions: sessions.as_ref(),
        front: &front,
    };
    let served = listeners.serve(&config, &bound, &behind, &ready, &serving, &stop);
    let grace = config.shutdown_grace;
    let new_key = if is_first { toolgate_store_sqlite::public_key(data.path()).ok() } else { None };
    let new_key = new_key.map(|key| key.fingerprint());
    let said = Said { tokens: !config.sessions.tokens.is_empty(), new_key: new_key.as_deref() };
    let announcement = announcement(args, &source, &summary, data, &bound, &said);
    // A client that reads the ready line may edit the configuration at once.
    let active = Active { file, inputs, secret };
    let mut reload = Reload::new(source, active, Arc::clone(&control), served).await;
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
                // A failure is in the log.
                drop(control.refresh().await);
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
            tracing::warn!("second stop signal: exiting without waiting");
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
        tracing::warn!("connections or child processes did not end in time");
    }
    gateway.admission().strangers().flush();
    close(&*store).await;
    tracing::info!("stopped");
    Ok(Done::Ok)
}

/// Closes the audit; a failure is logged.
async fn close(store: &dyn Store) {
    match tokio::time::timeout(FAREWELL, store.close(Timestamp::now())).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::error!(%error, "audit not closed; outcomes of the last calls will be recorded as unknown");
        }
        Err(_) => tracing::error!("audit not closed: the disk did not answer in time"),
    }
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
