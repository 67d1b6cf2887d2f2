//! `toolgate serve`: the gateway from start to stop.
//!
//! Order: configuration, data folder, listeners, gateway, ready; then signals and changes of the
//! configuration until a stop; then the drain. Each step has its file under `serve/`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_config::{Config, Listen, Problem};
use toolgate_control::{FileState, Inputs, PolicyFiles, Summary, unsafe_start, visible};
use toolgate_edge::listen::Front;
use toolgate_edge::tls::Tls;
use toolgate_gateway::{Gateway, LISTS, PINS, SessionDriver};
use toolgate_os::signals::{ProcessSignal, Signals};
use toolgate_store::Store;

use crate::args::ServeArgs;
use crate::clients::Client;
use crate::config_source::Source;
use crate::data::{DataFolder, data_path};
use crate::exit::Done;
use crate::{exit, log, print};

mod api;
mod bridge;
mod cache_file;
mod certificate;
mod checkpoints;
mod core_dumps;
#[cfg(debug_assertions)]
mod failpoint;
mod fd_limit;
mod listeners;
mod listing_only;
mod maintenance;
mod metrics;
mod random;
mod reload;
mod sessions;
mod start_text;
mod store;
mod watch;
mod webhook;
mod wire;

pub(crate) use bridge::Bridge;
pub(crate) use checkpoints::read as read_checkpoints;
use listeners::{Behind, Bound, Listeners};
pub(crate) use listing_only::{ListingGateway, NotListed};
pub(crate) use maintenance::{accept_clock, create_grant, take_over};
pub(crate) use random::token as new_token;
use reload::{Active, Reload};
use start_text::AccessMode;

/// How often idle agent sessions and children are ended.
const SWEEP: Duration = Duration::from_secs(5);
/// How often the store gets the time and is polled for changes of other processes, which are seen
/// with the second tick at the latest: within a second.
const TICK: Duration = Duration::from_millis(400);
const POLICY_WITH_GRANTS: &str = "`--policy` applies to calls without a token, which are refused if \
                                  there are grants: set `policy` of each grant instead";
/// How long children and connections may take to end after the drain.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<Done> {
    log::start(args.log)?;
    core_dumps::off();
    let source = Source::find(args.config.as_deref());
    let (loaded, inputs) = source.load_with_inputs()?;
    warn(&loaded.warnings);
    let folder = data_path(args.data.as_deref(), &loaded.config)?;
    // Whether the store has grants is known only once it is open.
    let exposed = unsafe_start::problems(&loaded, folder.join("toolgate.db").exists());
    if !exposed.is_empty() {
        print::problems(&exposed);
        bail!("toolgate refuses to start with this configuration");
    }
    let config = loaded.config;
    if args.policy.is_some() && !config.grants.is_empty() {
        return Err(exit::Usage(POLICY_WITH_GRANTS.to_owned()).into());
    }
    if args.dry_run {
        return dry_run(&folder);
    }
    fd_limit::raise();
    #[cfg(debug_assertions)]
    failpoint::arm()?;
    if let Ok(Some(it)) = toolgate_store_sqlite::pending_migration(&folder, Timestamp::now()) {
        tracing::info!(
            from = it.from,
            to = it.to,
            "migrating the data folder; a copy is kept in `backups`"
        );
    }
    let is_first = !folder.join("audit.key").exists();
    let data = DataFolder::open(folder, &random::token)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(serve(args, source, inputs, config, (&data, is_first)))
}

/// What a start would change in the data folder.
fn dry_run(folder: &Path) -> anyhow::Result<Done> {
    let pending = toolgate_store_sqlite::pending_migration(folder, Timestamp::now());
    let pending = pending.with_context(|| format!("the data folder `{}`", folder.display()))?;
    print::out(&match pending {
        None => "a start would migrate nothing\n".to_owned(),
        Some(it) => format!(
            "a start would copy the data folder to {} and then migrate it from schema {} to {}\n",
            visible(&it.backup.display().to_string()),
            it.from,
            it.to
        ),
    });
    Ok(Done::Ok)
}

fn refuse_unsafe(config: &Config, listen: &Listen, stored_grants: bool) -> anyhow::Result<()> {
    let reasons = unsafe_start::reasons(config, listen, stored_grants);
    if !reasons.is_empty() {
        let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
        bail!("toolgate refuses to start with this configuration:\n  - {}", reasons.join("\n  - "));
    }
    Ok(())
}

/// Prints the warnings of the configuration, or logs them if the log is JSON.
fn warn(warnings: &[Problem]) {
    if log::is_json() {
        for warning in warnings {
            tracing::warn!("{warning}");
        }
    } else {
        print::problems(warnings);
    }
}

/// Restores what earlier processes knew of the tools of servers.
async fn restore(gateway: &Gateway, store: &dyn Store) -> anyhow::Result<()> {
    let pinned = store.documents(PINS).await.context("cannot read the pins of tools")?;
    gateway.restore_pins(&pinned);
    let stored = store.documents(LISTS).await.context("cannot read the lists of servers")?;
    gateway.restore_lists(&stored, store);
    Ok(())
}

fn attach(gateway: &Arc<Gateway>, driver: &Arc<SessionDriver>, config: &Config) {
    gateway.set_dial_in(Arc::clone(driver));
    gateway.set_session_classes(toolgate_control::session_settings::classes(config));
    gateway.set_session_pin(wire::pin(config.sessions.pin));
}

fn every_second(gateway: &Gateway, store: &dyn Store) {
    gateway.list_new_servers();
    store.tick(Timestamp::now());
    gateway.admission().holds().sync(store.approvals_version());
}

async fn serve(
    args: &ServeArgs,
    source: Source,
    mut inputs: Inputs,
    config: Config,
    (data, is_first): (&DataFolder, bool),
) -> anyhow::Result<Done> {
    let mut signals = ServeSignals::listen()?;
    let tls = certificate::load(&config)?.map(Tls::new);
    let listeners = Listeners::bind(&config).await?;
    let bound = listeners.bound(&config, tls)?;

    let (store, secret) = store::open(data.path(), &config.audit)?;
    let stop = CancellationToken::new();
    let children = TaskTracker::new();
    let parts = api::Parts { store: &store, secret: &secret, data, bound: &bound, stop: &stop };
    let (control, admin) = api::control(&parts, &config, &children)?;
    let gateway = Arc::clone(control.gateway());
    gateway.admission().holds().set_own_url(bound.admin.clone().unwrap_or_default());
    let policies = PolicyFiles::read(&config, args.policy.as_deref(), &mut inputs);
    let local_policy = args.policy.clone();
    let file = FileState { config: config.clone(), policies, local_policy };
    let applied = control.replace_file(file.clone()).await;
    applied.map_err(|why| anyhow!("a policy cannot be used:\n{why}"))?;
    let summary = control.summary().await;
    refuse_unsafe(&config, control.bound(), summary.has_stored_grants)?;
    if args.policy.is_some() && !summary.local && summary.grants > 0 {
        return Err(exit::Usage(POLICY_WITH_GRANTS.to_owned()).into());
    }

    restore(&gateway, &*store).await?;
    let sessions = sessions::start(&config, &store, Arc::new(store::SystemClock)).await?;
    if let Some(sessions) = &sessions {
        attach(&gateway, &sessions.driver, &config);
    }

    let ready = Arc::new(AtomicBool::new(false));
    let serving = TaskTracker::new();
    let api = api::router(&admin, &bound, &config);
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
    let new_key = new_key(data, is_first);
    let extra = Extra { tokens: !config.sessions.tokens.is_empty(), new_key: new_key.as_deref() };
    let start_text = start_text(args, &source, &summary, data, &bound, &extra);
    // A client that reads the ready line may edit the configuration at once.
    let active = Active { file, inputs, secret };
    let mut reload = Reload::new(source, active, Arc::clone(&control), served).await;
    gateway.list_new_servers();
    let notices = tokio::spawn(webhook::run(Arc::clone(&control)));
    ready.store(true, Ordering::Relaxed);
    let mut announced = data.announce(&bound.kept_line(reload.config_file()))?;
    announce(&bound, &visible(&start_text));
    if args.ready_json {
        print::out(&format!("{}\n", bound.ready_line()));
    }

    let mut sweep = tokio::time::interval(SWEEP);
    let mut tick = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            signal = signals.next() => match signal {
                Received::Stop => break,
                Received::Reload => {
                    reload.now().await;
                    announced.renew(data, &bound.kept_line(reload.config_file()));
                }
            },
            () = reload.changed() => {
                reload.if_changed().await;
                announced.renew(data, &bound.kept_line(reload.config_file()));
            }
            _ = sweep.tick() => {
                gateway.sweep();
                gateway.store_lists(&*store);
            }
            _ = tick.tick() => {
                // A failure is in the log.
                drop(control.refresh().await);
                every_second(&gateway, &*store);
            }
        }
    }

    tracing::info!("stopping");
    ready.store(false, Ordering::Relaxed);
    notices.abort();
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
    wait_for_end(&serving, &children).await;
    gateway.store_lists(&*store);
    gateway.admission().auth_failures().flush();
    close(&*store).await;
    tracing::info!("stopped");
    Ok(Done::Ok)
}

/// The fingerprint of the audit key, if it is new.
fn new_key(data: &DataFolder, is_first: bool) -> Option<String> {
    let key = if is_first { toolgate_store_sqlite::public_key(data.path()).ok() } else { None };
    key.map(|key| key.fingerprint())
}

/// Waits until connections and child processes have ended.
async fn wait_for_end(serving: &TaskTracker, children: &TaskTracker) {
    serving.close();
    children.close();
    let closed = async { tokio::join!(serving.wait(), children.wait()) };
    if tokio::time::timeout(CLOSE_TIMEOUT, closed).await.is_err() {
        tracing::warn!("connections or child processes did not end in time");
    }
}

/// Closes the audit; a failure is logged.
async fn close(store: &dyn Store) {
    match tokio::time::timeout(CLOSE_TIMEOUT, store.close(Timestamp::now())).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::error!(%error, "audit not closed; outcomes of the last calls will be recorded as unknown");
        }
        Err(_) => tracing::error!("audit not closed: the disk did not answer in time"),
    }
}

/// Prints the start text; if the log is JSON, its lines are log lines and the addresses are fields.
fn announce(bound: &Bound, start_text: &str) {
    if !log::is_json() {
        return print::err(start_text);
    }
    let (mcp, sessions, admin) =
        (bound.mcp.as_deref(), bound.sessions.as_deref(), bound.admin.as_deref());
    tracing::info!(mcp, sessions, admin, "toolgate is up");
    let lines = start_text.lines().skip(1).map(str::trim).filter(|line| !line.is_empty());
    for line in lines {
        tracing::info!("{line}");
    }
}

fn access_mode(summary: &Summary, args: &ServeArgs) -> AccessMode {
    match (&args.policy, summary.local, summary.grants) {
        (None, true, _) => AccessMode::Local,
        (Some(policy), true, _) => AccessMode::LocalUnder(policy.clone()),
        (_, false, 0) => AccessMode::Closed,
        (_, false, count) => AccessMode::Granted(count),
    }
}

/// Further facts of the start text.
struct Extra<'a> {
    /// Whether sessions need a token.
    tokens: bool,
    /// The fingerprint of the audit key, if it is new.
    new_key: Option<&'a str>,
}

fn start_text(
    args: &ServeArgs,
    source: &Source,
    summary: &Summary,
    data: &DataFolder,
    bound: &Bound,
    extra: &Extra<'_>,
) -> String {
    start_text::text(&start_text::Start {
        mcp: bound.mcp.as_deref(),
        sessions: bound.sessions.as_deref(),
        admin: bound.admin.as_deref(),
        admin_token: &data.admin_token(),
        config: source.file().map(Path::new),
        servers: &summary.servers,
        access: &access_mode(summary, args),
        clients: &Client::of_this_user(),
        session_tokens: extra.tokens,
        new_key: extra.new_key,
    })
}

/// What a signal asks of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Received {
    Stop,
    Reload,
}

struct ServeSignals(Signals);

impl ServeSignals {
    fn listen() -> anyhow::Result<Self> {
        Signals::listen().map(Self).context("cannot install signal handlers")
    }

    async fn next(&mut self) -> Received {
        match self.0.next().await {
            ProcessSignal::Terminate | ProcessSignal::Interrupt => Received::Stop,
            ProcessSignal::HangUp => Received::Reload,
        }
    }

    async fn stop(&mut self) {
        while self.next().await != Received::Stop {}
    }
}
