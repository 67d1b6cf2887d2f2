//! Runs the server for the conformance suite.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolgate_testkit::conformance::main(std::env::args_os().skip(1))
}
