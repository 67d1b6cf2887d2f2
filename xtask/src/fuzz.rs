//! `cargo xtask fuzz [SECONDS]`: every target of `fuzz/`, each for a while; and the short run that
//! is a part of `cargo xtask test`.
//!
//! The stable compiler builds the targets with the coverage flags of `cargo fuzz`, and libFuzzer is
//! compiled from the source that `libfuzzer-sys` carries. Neither a nightly toolchain nor
//! `cargo-fuzz` is needed; a C++ compiler is.
//!
//! Invariant: the short run starts from the committed inputs alone and from a fixed seed, so that
//! every machine tries about the same inputs. The long run keeps what it finds under `target/fuzz`.
//! Start at [`run`] and [`short`].

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::cargo::cargo;
use crate::process::{output, run as run_command, run_logged};
use crate::report::say;
use crate::{root, target};

const DEFAULT_SECONDS: u64 = 60;
/// The short run, all targets together.
const SHORT_SECONDS: u64 = 60;
/// What a run may take longer than it was given: reading the inputs, the last input.
const SLACK: Duration = Duration::from_mins(2);

/// Coverage for libFuzzer: which edges ran, and what was compared.
const FLAGS: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    --cfg fuzzing";
/// No input may take more memory or time.
const LIMITS: [&str; 2] = ["-rss_limit_mb=512", "-timeout=10"];

pub(crate) fn run(words: &[&str]) -> Result<()> {
    let seconds = match words {
        [] => DEFAULT_SECONDS,
        [seconds] => seconds.parse().with_context(|| {
            format!("`{seconds}` is not a number of seconds (`fuzz [SECONDS]`)")
        })?,
        _ => bail!("too many arguments after `fuzz`: it takes a number of seconds or nothing"),
    };
    let folder = build()?;
    run_all(&targets()?, |name| {
        let grown = target().join("fuzz/corpus").join(name);
        fs::create_dir_all(&grown)?;
        fuzz(name, Command::new(folder.join(name)).arg(grown), seconds)
    })
}

/// A part of `cargo xtask test`.
pub(crate) fn short() -> Result<()> {
    let (folder, targets) = (build()?, targets()?);
    let seconds = (SHORT_SECONDS / targets.len() as u64).max(1);
    run_all(&targets, |name| {
        // libFuzzer writes what it finds into the first folder.
        let found = target().join("fuzz/found").join(name);
        if found.exists() {
            fs::remove_dir_all(&found)?;
        }
        fs::create_dir_all(&found)?;
        fuzz(name, Command::new(folder.join(name)).arg("-seed=1").arg(found), seconds)
    })
}

/// Builds all targets; the folder of their binaries.
fn build() -> Result<PathBuf> {
    let version = output(cargo().arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("`cargo -vV` names no host")?;
    let into = target().join("fuzz");
    let mut command = cargo();
    // With a target named, build scripts and macros are compiled without the flags.
    command
        .args(["build", "--locked", "--manifest-path", "fuzz/Cargo.toml"])
        .args(["--profile", "fuzz", "--target", host, "--target-dir"])
        .arg(&into)
        .env("RUSTFLAGS", FLAGS)
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    run_command(&mut command)?;
    Ok(into.join(host).join("fuzz"))
}

/// The names of all targets, in order.
fn targets() -> Result<Vec<String>> {
    let files = fs::read_dir(root().join("fuzz/fuzz_targets"))?;
    let mut names = Vec::new();
    for file in files {
        let path = file?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).map(str::to_owned);
        names.push(name.with_context(|| format!("`{}` has no name", path.display()))?);
    }
    names.sort();
    if names.is_empty() {
        bail!("`fuzz/` has no targets");
    }
    Ok(names)
}

fn run_all(targets: &[String], run: impl Fn(&str) -> Result<()>) -> Result<()> {
    let mut found = Vec::new();
    for name in targets {
        if let Err(error) = run(name) {
            say(&format!("{error:#}"));
            found.push(name.as_str());
        }
    }
    if !found.is_empty() {
        bail!(
            "failing inputs for {}; they are in `fuzz/artifacts`, and a target's binary takes one as its argument",
            found.join(", ")
        );
    }
    Ok(())
}

/// Runs one target from its committed inputs.
fn fuzz(name: &str, command: &mut Command, seconds: u64) -> Result<()> {
    let (logs, artifacts) = (target().join("fuzz/logs"), root().join("fuzz/artifacts").join(name));
    for folder in [&logs, &artifacts] {
        fs::create_dir_all(folder)?;
    }
    let log = logs.join(format!("{name}.log"));
    command
        .arg(root().join("fuzz/corpus").join(name))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(format!("-max_total_time={seconds}"))
        .arg("-print_final_stats=1")
        .args(LIMITS);
    run_logged(command, &log, Duration::from_secs(seconds) + SLACK)?;
    let log = fs::read_to_string(&log)?;
    let runs = executions(&log).unwrap_or("no");
    say(&format!("{name:<16} {runs} inputs in {seconds} s"));
    Ok(())
}

/// How many inputs were tried, by the log of libFuzzer.
fn executions(log: &str) -> Option<&str> {
    log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:")).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_built_and_has_inputs_to_start_from() {
        let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
        for name in targets().unwrap() {
            let path = format!("path = \"fuzz_targets/{name}.rs\"");
            assert!(manifest.contains(&path), "`{name}` is not in fuzz/Cargo.toml");
            let corpus = root().join("fuzz/corpus").join(&name);
            let files = fs::read_dir(&corpus).map_or(0, Iterator::count);
            assert!(files > 0, "`{}` has no inputs", corpus.display());
        }
    }

    #[test]
    fn the_log_states_how_many_inputs_were_tried() {
        let log = "Done 17 runs\nstat::number_of_executed_units: 17\nstat::average_exec_per_sec: 3";
        assert_eq!(executions(log), Some("17"));
        assert_eq!(executions(""), None);
    }
}
