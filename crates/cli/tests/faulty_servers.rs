//! Faulty servers: servers that hang, drip, send false answers, crash or flood run beside a healthy
//! one, through the whole binary. Agents of the healthy server must not be affected.
//!
//! One trial for each faulty server alone and one for all together, with children per agent and with
//! shared ones. `faulty_servers/scenario.rs` is the trial, `faulty_servers/endpoint.rs` the endpoint
//! of the agents, `faulty_servers/process.rs` inspects processes from outside.
//!
//! This binary is its own faulty servers: toolgate starts it as
//! `faulty_servers be-a-faulty-server NAME`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic, in their helpers too"
)]

#[path = "e2e/agent.rs"]
#[expect(dead_code, reason = "shared with e2e")]
mod agent;
#[path = "e2e/gate.rs"]
#[expect(dead_code, reason = "shared with e2e")]
mod gate;
#[path = "e2e/wire.rs"]
#[expect(dead_code, reason = "shared with e2e")]
mod wire;

#[path = "faulty_servers/endpoint.rs"]
mod endpoint;
#[path = "faulty_servers/process.rs"]
mod process;
#[path = "faulty_servers/scenario.rs"]
mod scenario;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use toolgate_testkit::faulty::{FaultyServer, main_if_child};

use crate::endpoint::ENDPOINTS;
use crate::scenario::{INSTANCES, run_scenario};

fn main() -> ExitCode {
    if let Some(code) = main_if_child() {
        return code;
    }
    libtest_mimic::run(&Arguments::from_args(), trials()).exit_code()
}

fn trials() -> Vec<Trial> {
    let all: Vec<FaultyServer> = FaultyServer::all()
        .iter()
        .copied()
        .filter(|server| *server != FaultyServer::Healthy)
        .collect();
    let mut groups: Vec<(String, Vec<FaultyServer>)> =
        all.iter().map(|server| (server.name().replace('-', "_"), vec![*server])).collect();
    groups.push(("all_together".to_owned(), all));
    let mut trials = Vec::new();
    for endpoint in ENDPOINTS {
        for (name, servers) in &groups {
            for instances in INSTANCES {
                let name = format!("{}::{name}::{}", endpoint.name, instances.replace('-', "_"));
                let servers = servers.clone();
                trials.push(Trial::test(name, move || {
                    run_scenario(endpoint, &servers, instances);
                    Ok(())
                }));
            }
        }
    }
    trials
}
