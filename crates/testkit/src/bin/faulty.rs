//! Runs one faulty server.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolgate_testkit::faulty::main(std::env::args_os().skip(1))
}
