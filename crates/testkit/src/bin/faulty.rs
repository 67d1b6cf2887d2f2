//! Runs one animal of the zoo.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolgate_testkit::faulty::main(std::env::args_os().skip(1))
}
