//! `toolgate demo`: programs that dial in, played for people who have none at hand.

use std::time::Duration;

use anyhow::Context;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use toolgate_onec::{ClientOptions, ClientRecord, SimulatedClient};

use crate::args::{DataArgs, DemoArgs, DemoVerb, OneCArgs};
use crate::data::{announced, find_data};
use crate::exit::Done;
use crate::print;

/// Where sessions dial in if nobody says otherwise.
const USUAL: &str = "ws://127.0.0.1:4000/sessions";
/// How often is looked at what it does.
const LOOK: Duration = Duration::from_millis(100);
/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<Done> {
    let DemoVerb::Onec(args) = &args.verb;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(onec(args))
}

/// Where the gateway of the data folder lets sessions dial in.
fn running(args: &DataArgs) -> Option<String> {
    let folder = find_data(args.data.as_deref(), args.config.as_deref()).ok()?;
    let ready: Value = serde_json::from_str(&announced(&folder, "--url").ok()?).ok()?;
    Some(ready.get("sessions")?.as_str()?.to_owned())
}

async fn onec(args: &OneCArgs) -> anyhow::Result<Done> {
    let url = args.url.clone().or_else(|| running(&args.data)).unwrap_or_else(|| USUAL.to_owned());
    let usual = ClientOptions::new(url.as_str(), &args.uid, args.profile, &args.base);
    let options = ClientOptions {
        kind: args.kind.clone().unwrap_or(usual.kind),
        config_id: args.config_id.clone(),
        reconnect_every: args.reconnect_every.map(Duration::from_secs).or(usual.reconnect_every),
        ..usual
    };
    print::err(&format!(
        "a 1C client that is none: session `{}`, kind `{}`, infobase `{}`, dials {}; Ctrl-C ends it\n",
        options.uid,
        options.kind,
        options.base,
        // A token stands behind the path.
        url.split("/sessions/").next().unwrap_or_default()
    ));
    // Before anybody can have seen it: from then on a signal means a goodbye.
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen to signals")?;
    let client = SimulatedClient::start(options);
    let (mut before, mut quiet) = (ClientRecord::default(), false);
    loop {
        tokio::select! {
            _ = interrupt.recv() => {
                client.bye(false);
                if tokio::time::timeout(GOODBYE, client.ended()).await.is_err() {
                    print::err("nobody has heard the goodbye\n");
                }
                return Ok(Done::Ok);
            }
            () = tokio::time::sleep(LOOK) => {}
        }
        let now = client.seen();
        tell(&before, &now, &mut quiet);
        if now.shutdown {
            print::err("asked to end\n");
            return Ok(Done::Ok);
        }
        before = now;
    }
}

fn tell(before: &ClientRecord, now: &ClientRecord, quiet: &mut bool) {
    let was_quiet = *quiet;
    if now.connected && !before.connected {
        print::err("connected and registered\n");
    }
    if before.connected && !now.connected {
        let code = now.close_code.map(|code| format!(" (closed with {code})")).unwrap_or_default();
        print::err(&format!("not connected{code}; it tries again\n"));
    }
    // Once until it is connected again: it goes on trying for ever.
    *quiet = !now.connected && (*quiet || now.failures > before.failures);
    if *quiet && !was_quiet {
        print::err("nobody answers there; it tries again until somebody does\n");
    }
    for call in now.calls.iter().skip(before.calls.len()) {
        print::err(&format!("called: {call}\n"));
    }
}
