//! An independent Rust implementation of the protocol at both ends: rmcp's client, toolgate, and
//! rmcp's server, each with a handshake and without.
//!
//! `upstream.rs` is the server, `agent.rs` the client. This binary is also a server that toolgate
//! starts as a child: `rmcp be-a-server stdio --era sessionful`.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic, in their helpers too"
)]
#![expect(deprecated, reason = "sampling is deprecated in the newest protocol and alive in others")]

#[path = "../e2e/gate.rs"]
#[expect(dead_code, reason = "shared with e2e")]
mod gate;

mod agent;
mod upstream;

mod children;
mod eras;
mod tour;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// The argument that makes this binary a server.
const ASKED: &str = "be-a-server";

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == ASKED) {
        return toolgate_testkit::conformance::main(words);
    }
    let trials = vec![
        trial("a_tour", tour::a_tour),
        trial("every_agent_answers_its_own_server", tour::every_agent_answers_its_own_server),
        trial("any_client_with_any_server", eras::any_client_with_any_server),
        trial("any_client_with_any_child", children::any_client_with_any_child),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn trial<F: Future<Output = ()> + 'static>(name: &str, test: fn() -> F) -> Trial {
    Trial::test(name, move || {
        tokio::runtime::Runtime::new()?.block_on(test());
        Ok(())
    })
}
