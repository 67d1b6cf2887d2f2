//! Not one answer at the wrong client: a thousand agents that all number their requests 0, 1, 2 …
//! against servers that they share (children, which answer in another order, and HTTP servers),
//! with cancels and hang-ups at random. Every call carries a mark, and no other mark may come back.
//! Half of the agents and half of the servers have no handshake (protocol 2026-07-28).
//!
//! `TOOLGATE_MISROUTE` is the number of answers that are checked (100,000 if not set);
//! `TOOLGATE_SEED` repeats a run whose seed was printed.
//!
//! This binary is the child itself: toolgate starts it as `misroute be-a-faulty-server shuffling`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic, in their helpers too"
)]

#[path = "e2e/gate.rs"]
#[expect(dead_code, reason = "shared with e2e")]
mod gate;

#[path = "misroute/client.rs"]
mod client;

use std::hash::{BuildHasher as _, RandomState};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::task::JoinSet;
use toolgate_testkit::echo;
use toolgate_testkit::faulty::{CHILD_ARGUMENT, main_if_child};

use crate::client::{Client, Era, Server, Tally};
use crate::gate::Gate;

const CLIENTS: u64 = 1000;
const ANSWERS: u64 = 100_000;

/// Where clients reach the servers, one after the other: half of them each at its own endpoint,
/// half at the one for all servers.
const SERVERS: [Server; 8] = [
    Server { path: "/mcp/child", tool: "echo", gives_all: false },
    Server { path: "/mcp/web", tool: "echo", gives_all: true },
    Server { path: "/mcp/newer-child", tool: "echo", gives_all: false },
    Server { path: "/mcp/newer-web", tool: "echo", gives_all: true },
    Server { path: "/mcp", tool: "child__echo", gives_all: false },
    Server { path: "/mcp", tool: "web__echo", gives_all: true },
    Server { path: "/mcp", tool: "newer-child__echo", gives_all: false },
    Server { path: "/mcp", tool: "newer-web__echo", gives_all: true },
];

fn main() -> ExitCode {
    if let Some(code) = main_if_child() {
        return code;
    }
    let trial = Trial::test("not_one_answer_at_the_wrong_client", || {
        raise_file_limit();
        tokio::runtime::Runtime::new()?.block_on(run());
        Ok(())
    });
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit_code()
}

#[expect(clippy::print_stdout, reason = "whoever looks into a failure needs the seed")]
async fn run() {
    let seed = number("TOOLGATE_SEED").unwrap_or_else(|| RandomState::new().hash_one(0));
    let answers = number("TOOLGATE_MISROUTE").unwrap_or(ANSWERS);
    println!("TOOLGATE_SEED={seed} cargo test -p toolgate --test misroute");

    let http = echo::start().await.unwrap();
    let newer = echo::EchoOptions { newer: true, ..echo::EchoOptions::default() };
    let newer = echo::start_with(newer).await.unwrap();
    let mut gate = Gate::start(&config(http.url(), newer.url(), seed));
    let mut clients = JoinSet::new();
    // Each server has clients of either era in turn.
    let eras = [Era::Legacy, Era::Modern].into_iter().flat_map(|era| [era; SERVERS.len()]);
    let kinds = SERVERS.into_iter().cycle().zip(eras.cycle());
    for (number, (server, era)) in (0..CLIENTS).zip(kinds) {
        let client = Client::new(gate.mcp(), server, era, number, seed);
        clients.spawn(client.run(answers.div_ceil(CLIENTS)));
    }
    let mut total = Tally::default();
    while let Some(tally) = clients.join_next().await {
        // Dropping the rest ends them.
        total.add(tally.unwrap());
    }
    println!("{total:?}");
    assert!(total.answered >= answers, "{total:?}");
    assert!(total.cancelled > 0 && total.hung_up > 0, "{total:?}");
    assert!(total.failed * 10 <= total.answered, "most are answered: {total:?}");
    assert_eq!(gate.stop(), (Some(0), String::new()));
}

fn config(url: &str, newer: &str, seed: u64) -> String {
    let program = std::env::current_exe().unwrap();
    let child = |server: &str| {
        let program = program.display();
        format!(
            "{{ command: '{program}', args: [{CHILD_ARGUMENT}, {server}, --amount, '{seed}'], instances: shared }}"
        )
    };
    format!(
        "audit: {{ durability: off }}\nagent_sessions: {{ max: 8192, per_grant: 8192 }}\nservers:\n  child: {}\n  newer-child: {}\n  \
         web: {{ url: '{url}' }}\n  newer-web: {{ url: '{newer}' }}\n",
        child("shuffling"),
        child("shuffling-newer")
    )
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// Every client has a connection, and the HTTP server is in this process.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
}
