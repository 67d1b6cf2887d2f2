//! `run` without a gateway of its own address: decides and records in the data folder.
//!
//! A gateway that runs on the folder shares limits, freezes, approvals and the audit, because the
//! store decides every call of every process in one transaction.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_control::{Inputs, STDIO, trusted};
use toolgate_edge::child::ChildEnd;
use toolgate_edge::stdio_agent::{Served, serve};
use toolgate_gateway::Endpoint;
use toolgate_os::process::signal_of;
use toolgate_os::signals::Signals;

use super::Client;
use super::target::Target;
use crate::args::RunArgs;
use crate::data::share;
use crate::exit::Usage;
use crate::serve::Bridge;

const TICK: Duration = Duration::from_millis(400);
/// How often idle agent sessions end and the policy is read again.
const SWEEP: Duration = Duration::from_secs(2);
/// How long a server that did not start waits for the first request of the client, whose answer tells
/// the reason.
const FIRST_REQUEST: Duration = Duration::from_secs(1);
/// How long calls may take to end, which have had their time already.
const DRAIN: Duration = Duration::from_secs(1);
const NEEDS_POLICY: &str = "this data folder has grants (or `local: off`), so calls over stdio need a \
                            policy: name one with --policy";

pub(super) async fn run(args: &RunArgs, target: Target, client: Client) -> anyhow::Result<u8> {
    share(&target.folder)?;
    let mut policy = args.policy.as_deref().map(PolicyFile::new);
    let bridge = Bridge::start(&target.folder, &target.config)?;
    let code = bridged(&bridge, &target, policy.as_mut(), client).await;
    bridge.stop().await;
    code
}

async fn bridged(
    bridge: &Bridge,
    target: &Target,
    mut policy: Option<&mut PolicyFile<'_>>,
    client: Client,
) -> anyhow::Result<u8> {
    if let Some(policy) = &mut policy {
        policy.read(bridge)?;
    }
    bridge.restore().await?;
    if !bridge.access.apply().await.context("cannot read the store")? {
        return Err(Usage(NEEDS_POLICY.to_owned()).into());
    }
    let mut signals = Signals::listen().context("cannot install signal handlers")?;
    let mut ends = bridge.watch.ends();
    let stop = CancellationToken::new();
    let agent = Served {
        gateway: bridge.gateway.clone(),
        endpoint: Endpoint::Server(target.name.clone()),
        limits: bridge.limits.clone(),
        grace: target.config.shutdown_grace,
    };
    let serving = serve(agent, client.input, client.output, &stop);
    tokio::pin!(serving);
    let (mut tick, mut sweep) = (tokio::time::interval(TICK), tokio::time::interval(SWEEP));
    let mut ending = Ending::default();
    let server = bridge.gateway.server(&target.name);
    let has_worked = || server.as_ref().is_some_and(|server| server.has_worked());
    if let Some(server) = &server {
        server.start_ahead(STDIO);
    }
    loop {
        tokio::select! {
            () = &mut serving => break,
            signal = signals.next() => {
                let number = signal.number();
                ending.signalled = true;
                if bridge.watch.signal(number) == 0 {
                    ending.code = Some(signal_code(number, target));
                    stop.cancel();
                }
            }
            Ok(()) = ends.changed() => {
                let end = *ends.borrow_and_update();
                if let Some(end) = end.filter(|_| ending.signalled || !has_worked()) {
                    if ending.signalled || ending.code.is_some() {
                        stop.cancel();
                    }
                    ending.code = Some(code_of(end));
                    ending.at = Some(Instant::now() + FIRST_REQUEST);
                }
            }
            () = ending.is_due() => stop.cancel(),
            _ = tick.tick() => bridge.tick().await,
            _ = sweep.tick() => {
                bridge.gateway.sweep();
                if let Some(policy) = &mut policy {
                    policy.read_again(bridge).await;
                }
            }
        }
    }
    let early = (*ends.borrow()).filter(|_| !has_worked());
    if let Some(code) = ending.code.or_else(|| early.map(code_of)) {
        return Ok(code);
    }
    // The input has ended: the server is told so, and its own status is the result.
    ends.mark_unchanged();
    bridge.gateway.drain(DRAIN).await;
    if let Some(server) = &server {
        server.end_ahead().await;
    }
    let end = *ends.borrow();
    let exited = end.filter(|_| ends.has_changed().unwrap_or_default());
    Ok(match exited {
        // A server that did not end by itself was ended by toolgate.
        Some(ChildEnd::Exited(status)) => exit_byte(status.code().unwrap_or_default()),
        _ => 0,
    })
}

/// Why and how it ends.
#[derive(Default)]
struct Ending {
    /// A signal was passed on: the end of the server ends this process.
    signalled: bool,
    code: Option<u8>,
    /// When it ends at the latest.
    at: Option<Instant>,
}

impl Ending {
    async fn is_due(&self) {
        match self.at {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }
}

/// Without a process to pass a signal to. A server over HTTP has none, so the end is orderly.
fn signal_code(number: i32, target: &Target) -> u8 {
    let is_child = target
        .config
        .servers
        .iter()
        .any(|server| matches!(server.transport, toolgate_config::Transport::Stdio(_)));
    if is_child { exit_byte(128 + number) } else { 0 }
}

fn code_of(end: ChildEnd) -> u8 {
    match end {
        ChildEnd::NotStarted(code) => code,
        ChildEnd::Exited(status) => match (status.code(), signal_of(status)) {
            (Some(code), _) => exit_byte(code),
            (None, Some(signal)) => exit_byte(128 + signal),
            (None, None) => 1,
        },
    }
}

fn exit_byte(code: i32) -> u8 {
    u8::try_from(code & 0xff).unwrap_or(1)
}

/// The policy of the command line, read again when it changes.
struct PolicyFile<'a> {
    path: &'a Path,
    inputs: Inputs,
}

impl<'a> PolicyFile<'a> {
    fn new(path: &'a Path) -> Self {
        Self { path, inputs: Inputs::default() }
    }

    fn read(&mut self, bridge: &Bridge) -> anyhow::Result<()> {
        let read = trusted::read(self.path);
        self.inputs = Inputs::default();
        self.inputs.record(self.path, &read);
        let bytes =
            read.with_context(|| format!("cannot read the policy `{}`", self.path.display()))?;
        let used = bridge.access.set_policy(self.path, bytes);
        used.map_err(|why| anyhow!("the policy cannot be used:\n{why}"))
    }

    async fn read_again(&mut self, bridge: &Bridge) {
        if !self.inputs.have_changed(trusted::read) {
            return;
        }
        match self.read(bridge) {
            Ok(()) => match bridge.access.apply().await {
                Ok(_) => tracing::info!("policy reloaded"),
                Err(error) => tracing::error!(%error, "cannot read the store"),
            },
            Err(error) => {
                tracing::error!("policy not reloaded; the previous one stays active:\n{error:#}");
            }
        }
    }
}
