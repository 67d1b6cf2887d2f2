//! Runs the server that the conformance suite asks for.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolgate_testkit::conformance::main(std::env::args_os().skip(1))
}
