//! Compares what Python, Node and Go parse of arguments with what the policy parses: 5,000 bodies,
//! one process for each reader.
//!
//! The bodies and the judgement are `crates/admission/examples/readers.rs`; the readers stand in
//! `tests/peers/readers`.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::peers::{folder, need, sources};
use crate::process::{output, run};
use crate::report::say;

const COUNT: &str = "5000";

pub(crate) fn compare() -> Result<()> {
    let version = |program: &str, word: &str| output(Command::new(program).arg(word));
    let python = need("python3", &["python3"], || version("python3", "--version"))?;
    let node = need("node", &["nodejs"], || version("node", "--version"))?;
    let go = need("go", &["golang-go"], || version("go", "version"))?;
    say(&format!("{python}, node {node}, {go}"));
    let work = folder("runs").join("readers");
    fs::create_dir_all(&work)?;
    let bodies = work.join("bodies");
    fs::write(&bodies, output(example().args(["bodies", COUNT]))?)?;
    let paths = output(example().arg("paths"))?;
    let paths = paths.trim();
    let scripts = sources().join("readers");
    let go = work.join("read-go");
    run(Command::new("go")
        .args(["build", "-o"])
        .arg(&go)
        .arg(scripts.join("read.go"))
        .env("GOCACHE", work.join("go"))
        .env("GO111MODULE", "off"))?;
    let mut judge = example();
    judge.args(["judge", COUNT]);
    let script = |program: &str, file: &str| {
        let mut command = Command::new(program);
        command.arg(scripts.join(file)).arg(paths);
        command
    };
    let readers = [
        ("python", script("python3", "read.py")),
        ("node", script("node", "read.mjs")),
        ("go", Command::new(&go)),
    ];
    for (name, mut command) in readers {
        let found = work.join(name).with_extension("jsonl");
        read(&mut command, &bodies, &found).with_context(|| format!("{name} cannot read"))?;
        judge.arg(format!("{name}={}", found.display()));
    }
    run(&mut judge)
}

fn read(command: &mut Command, bodies: &Path, found: &Path) -> Result<()> {
    let status = command.stdin(File::open(bodies)?).stdout(File::create(found)?).status()?;
    ensure!(status.success(), "it ended with {status}");
    Ok(())
}

fn example() -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args([
        "run",
        "--quiet",
        "--package",
        "toolgate-admission",
        "--example",
        "readers",
        "--",
    ]);
    command
}
