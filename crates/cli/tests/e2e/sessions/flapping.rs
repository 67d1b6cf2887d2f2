//! A server channel that drops its socket again and again, with calls going on all the while.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::json;
use toolgate_testkit::onec::{ClientOptions, ClientProfile, SimulatedClient};

use super::{open, text, tools};
use crate::gate::{Gate, eventually};

/// How many times the channels come back, and how often: a few times in a hurry, or as often as
/// `TOOLGATE_FLAPS` sets (`cargo xtask soak flaps`), once a second. Each time they have a new socket.
fn flaps() -> (u32, Duration) {
    match std::env::var("TOOLGATE_FLAPS") {
        Ok(returns) => (returns.parse().unwrap(), Duration::from_secs(1)),
        Err(_) => (12, Duration::from_millis(150)),
    }
}

/// Signals the end when it is dropped.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn not_one_call_is_lost_or_misrouted_and_lists_do_not_flicker() {
    let gate = Gate::start("");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let _inside = runtime.enter();
    let url = gate.ready()["sessions"].as_str().unwrap();
    let (returns, every) = flaps();
    let channel = |base: &str| {
        let uid = format!("server-{base}");
        SimulatedClient::start(ClientOptions {
            reconnect_every: Some(every),
            work: Duration::from_millis(20),
            ..ClientOptions::new(url, &uid, ClientProfile::Server, base)
        })
    };
    let channels = [channel("trade"), channel("stock")];
    let agent = open(&gate);
    eventually("both are there", || {
        let list = agent.call("session_list", &json!({}));
        (list["structuredContent"]["sessions"].as_array().unwrap().len() == 2).then_some(())
    });
    let before = tools(&agent);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        // Also when something here fails, or it would never end.
        let _end = End(&over);
        let callers: Vec<_> = ["trade", "stock"]
            .into_iter()
            .flat_map(|base| [(base, 0), (base, 1)])
            .map(|(base, caller)| {
                let (gate, over) = (&gate, &over);
                scope.spawn(move || {
                    let agent = open(gate);
                    let mut calls = 0;
                    while !over.load(Ordering::Relaxed) {
                        let mark = format!("{base} {caller} {calls}");
                        let session = format!("server-{base}");
                        let arguments = json!({"session_id": session, "Имя": mark});
                        let result = agent.call("get_metadata", &arguments);
                        assert_ne!(result["isError"], true, "{result}");
                        assert!(text(&result).contains(&mark), "{result}");
                        calls += 1;
                    }
                    calls
                })
            })
            .collect();
        eventually("both have come back often enough", || {
            assert_eq!(tools(&agent), before, "no flicker");
            let often = |channel: &SimulatedClient| channel.seen().registers >= returns;
            channels.iter().all(often).then_some(())
        });
        over.store(true, Ordering::Relaxed);
        for caller in callers {
            assert!(caller.join().unwrap() > 0);
        }
    });
}
