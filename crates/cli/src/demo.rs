//! `toolgate demo`: every control on one machine, with nothing to install; `demo onec` simulates one
//! program that dials in.
//!
//! `demo/gateway.rs` starts a gateway, `demo/server.rs` are its servers, `demo/tour.rs` is the agent.

mod gateway;
mod server;
mod tour;

use std::time::Duration;

use anyhow::Context;
use serde_json::Value;
use tokio::runtime::Runtime;
use toolgate_onec::{ClientOptions, ClientProfile, ClientRecord, SimulatedClient};
use toolgate_os::signals::Signals;

use crate::args::{DataArgs, DemoArgs, DemoVerb, OneCArgs};
use crate::data::{announced, find_data};
use crate::exit::Done;
use crate::print;
use gateway::DemoGateway;
use tour::Tour;

/// The address if no gateway runs on the data folder.
const DEFAULT_URL: &str = "ws://127.0.0.1:4000/sessions";
/// How often the state of the client is printed.
const POLL: Duration = Duration::from_millis(100);
/// How long `session.bye` may take.
const BYE_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<Done> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    match &args.verb {
        Some(DemoVerb::Onec(args)) => runtime.block_on(onec(args)),
        Some(DemoVerb::Server { kind }) => server::run(*kind),
        None => all(args.once, &runtime),
    }
}

/// The whole demo.
fn all(once: bool, runtime: &Runtime) -> anyhow::Result<Done> {
    // Before anything starts, so that Ctrl-C ends all of it in order.
    let _inside = runtime.enter();
    let mut signals = Signals::listen().context("cannot listen to signals")?;
    print::err("starting three servers, two 1C bases, an agent and a gateway\n");
    let gateway = DemoGateway::start()?;
    let url = gateway.address("sessions");
    let bases = [("accounting", "Бухгалтерия"), ("trade", "Торговля")].map(|(uid, base)| {
        SimulatedClient::start(ClientOptions::new(url, uid, ClientProfile::Thin, base))
    });
    Tour::new(&gateway).run()?;
    print::out("\nEvery sentence above was checked against the audit.\n");
    if !once {
        print::out(&what_to_look_at(&gateway));
        print::err("Ctrl-C ends the demo and removes its folder\n");
        runtime.block_on(signals.next());
    }
    drop(bases);
    drop(gateway);
    Ok(Done::Ok)
}

fn what_to_look_at(gateway: &DemoGateway) -> String {
    let (data, mcp) = (gateway.data(), gateway.address("mcp"));
    format!(
        "While this runs, look at it in another terminal:\n\n  \
           export TOOLGATE_DATA={}\n  \
           toolgate console                     # all of it in a browser: prints a link that signs you in\n  \
           toolgate status                      # one screen, and what needs your attention\n  \
           toolgate audit list                  # each call, and the rule that decided it\n  \
           toolgate approval list               # send_mail still waits for you: approve or deny it\n  \
           toolgate tool show --diff rug-puller/add\n  \
           toolgate audit verify                # the chain of hashes is whole\n\n\
         Agents connect to {mcp}/mcp.\n",
        data.display()
    )
}

/// The sessions address of the gateway that runs on the data folder.
fn running(args: &DataArgs) -> Option<String> {
    let folder = find_data(args.data.as_deref(), args.config.as_deref()).ok()?;
    let ready: Value = serde_json::from_str(&announced(&folder, "--url").ok()?).ok()?;
    Some(ready.get("sessions")?.as_str()?.to_owned())
}

async fn onec(args: &OneCArgs) -> anyhow::Result<Done> {
    let url =
        args.url.clone().or_else(|| running(&args.data)).unwrap_or_else(|| DEFAULT_URL.to_owned());
    let defaults = ClientOptions::new(url.as_str(), &args.uid, args.profile, &args.base);
    let options = ClientOptions {
        kind: args.kind.clone().unwrap_or(defaults.kind),
        config_id: args.config_id.clone(),
        reconnect_every: args.reconnect_every.map(Duration::from_secs).or(defaults.reconnect_every),
        ..defaults
    };
    print::err(&format!(
        "simulated 1C client: session `{}`, kind `{}`, infobase `{}`, connecting to {}; Ctrl-C ends it\n",
        options.uid,
        options.kind,
        options.base,
        // The path may end with a token.
        url.split("/sessions/").next().unwrap_or_default()
    ));
    // Before the client connects: from then on a signal sends `session.bye`.
    let mut signals = Signals::listen().context("cannot listen to signals")?;
    let client = SimulatedClient::start(options);
    let (mut before, mut quiet) = (ClientRecord::default(), false);
    loop {
        tokio::select! {
            _ = signals.next() => {
                client.bye(false);
                if tokio::time::timeout(BYE_TIMEOUT, client.ended()).await.is_err() {
                    print::err("the gateway did not answer `session.bye`\n");
                }
                return Ok(Done::Ok);
            }
            () = tokio::time::sleep(POLL) => {}
        }
        let now = client.seen();
        report(&before, &now, &mut quiet);
        if now.shutdown {
            print::err("the gateway asked the client to end\n");
            return Ok(Done::Ok);
        }
        before = now;
    }
}

fn report(before: &ClientRecord, now: &ClientRecord, quiet: &mut bool) {
    let was_quiet = *quiet;
    if now.connected && !before.connected {
        print::err("connected and registered\n");
    }
    if before.connected && !now.connected {
        let code = now.close_code.map(|code| format!(" (closed with {code})")).unwrap_or_default();
        print::err(&format!("disconnected{code}; reconnecting\n"));
    }
    // Printed once until it is connected again; it retries for ever.
    *quiet = !now.connected && (*quiet || now.failures > before.failures);
    if *quiet && !was_quiet {
        print::err("cannot connect; retrying\n");
    }
    for call in now.calls.iter().skip(before.calls.len()) {
        print::err(&format!("called: {call}\n"));
    }
}
