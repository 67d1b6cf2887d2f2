//! `cargo xtask test`: the parts of the test run and their order.
//!
//! Invariant: every selected part runs or fails; a part whose needs failed has failed.
//! Start at [`PARTS`].

use anyhow::{Result, bail};

use crate::cargo::cargo;
use crate::clients;
use crate::closing;
use crate::conformance;
use crate::console;
use crate::fuzz;
use crate::mutants;
use crate::peers;
use crate::process::{output, run as run_command};
use crate::readers;
use crate::real;
use crate::report::{Report, say};

/// One part of the run.
struct Part {
    name: &'static str,
    what: &'static str,
    /// Parts that must have succeeded before.
    needs: &'static [&'static str],
    quick: bool,
    run: fn() -> Result<()>,
}

const PARTS: &[Part] = &[
    Part { name: "fmt", what: "formatting", needs: &[], quick: true, run: fmt },
    Part {
        name: "clippy",
        what: "lints, warnings are errors",
        needs: &[],
        quick: true,
        run: clippy,
    },
    Part { name: "unit", what: "the tests of all crates", needs: &[], quick: true, run: unit },
    Part {
        name: "schedules",
        what: "the store's engine under thousands of schedules",
        needs: &[],
        quick: false,
        run: schedules,
    },
    Part {
        name: "mutants",
        what: "tests fail on planted mistakes, a tenth of them by day",
        needs: &[],
        quick: false,
        run: mutants::todays,
    },
    Part {
        name: "doc",
        what: "documentation, warnings are errors",
        needs: &[],
        quick: true,
        run: doc,
    },
    Part {
        name: "readers",
        what: "Python, Node and Go read no arguments otherwise than the policy",
        needs: &[],
        quick: false,
        run: readers::compare,
    },
    Part {
        name: "fuzz",
        what: "every fuzz target for a few seconds, from its committed inputs",
        needs: &[],
        quick: false,
        run: fuzz::short,
    },
    Part { name: "build", what: "the release binary", needs: &[], quick: false, run: build },
    Part {
        name: "peers",
        what: "real servers and clients",
        needs: &[],
        quick: false,
        run: peers::install,
    },
    Part {
        name: "direct",
        what: "two direct walks of each real server are the same",
        needs: &["peers"],
        quick: false,
        run: real::direct,
    },
    Part {
        name: "through",
        what: "real servers give the same through toolgate",
        needs: &["build", "peers", "direct"],
        quick: false,
        run: real::through,
    },
    Part {
        name: "together",
        what: "real servers give the same calls all at once on /mcp",
        needs: &["build", "peers", "direct"],
        quick: false,
        run: real::together,
    },
    Part {
        name: "scan",
        what: "the tools of real servers are found, judged and recognised",
        needs: &["build", "peers"],
        quick: false,
        run: real::scan,
    },
    Part {
        name: "clients",
        what: "what real clients go through with toolgate",
        needs: &["build", "peers"],
        quick: false,
        run: clients::run,
    },
    Part {
        name: "closing",
        what: "the four closing tools under their documents, by the wall clock",
        needs: &["build", "peers"],
        quick: false,
        run: closing::run,
    },
    Part {
        name: "console",
        what: "the console in a real browser",
        needs: &["build", "peers"],
        quick: false,
        run: console::all,
    },
    Part {
        name: "conformance",
        what: "the official suite gives the same through toolgate, check by check",
        needs: &["peers"],
        quick: false,
        run: conformance::run,
    },
];

pub(crate) fn run(words: &[&str]) -> Result<()> {
    let wanted: Vec<&Part> = match words {
        [] => PARTS.iter().collect(),
        ["--quick"] => PARTS.iter().filter(|part| part.quick).collect(),
        ["--only", name] => with_needs(name)?,
        ["--list"] => {
            for part in PARTS {
                say(&format!("{:<12} {}", part.name, part.what));
            }
            return Ok(());
        }
        _ => bail!("`test` takes nothing, `--quick`, `--only PART` or `--list`"),
    };
    let mut report = Report::default();
    for part in wanted {
        let missing = part.needs.iter().find(|need| report.failed(need));
        report.part(part.name, part.what, || match missing {
            None => (part.run)(),
            Some(need) => bail!("not run: it needs `{need}`, which failed"),
        });
    }
    report.close()
}

/// The part `name` and before it those it needs, in the order of [`PARTS`].
fn with_needs(name: &str) -> Result<Vec<&'static Part>> {
    let Some(part) = PARTS.iter().find(|part| part.name == name) else {
        let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        bail!("unknown part `{name}`; the parts are {}", names.join(", "));
    };
    Ok(PARTS.iter().filter(|p| p.name == name || part.needs.contains(&p.name)).collect())
}

fn fmt() -> Result<()> {
    run_command(cargo().args(["fmt", "--check"]))
}

fn clippy() -> Result<()> {
    run_command(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

/// With nextest where it is installed, else with cargo's own runner: the same tests.
fn unit() -> Result<()> {
    if output(cargo().args(["nextest", "--version"])).is_ok() {
        return run_command(cargo().args(["nextest", "run", "--workspace", "--profile", "ci"]));
    }
    say("cargo-nextest is not installed, `cargo test` runs the same tests");
    run_command(cargo().args(["test", "--workspace", "--no-fail-fast"]))
}

/// Separate from the others: here threads and locks are those of shuttle.
fn schedules() -> Result<()> {
    let words = ["test", "-p", "toolgate-store", "--features", "shuttle", "--test", "schedules"];
    run_command(cargo().args(words))
}

fn doc() -> Result<()> {
    let mut command = cargo();
    command.args(["doc", "--no-deps", "--workspace"]).env("RUSTDOCFLAGS", "-D warnings");
    run_command(&mut command)
}

fn build() -> Result<()> {
    run_command(cargo().args(["build", "--release", "--bin", "toolgate"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_precede_the_parts_that_need_them() {
        for (place, part) in PARTS.iter().enumerate() {
            for need in part.needs {
                let before = PARTS.iter().take(place).any(|earlier| earlier.name == *need);
                assert!(before, "`{}` needs `{need}`, which is not before it", part.name);
            }
        }
    }

    #[test]
    fn quick_needs_nothing_but_quick_parts() {
        for part in PARTS.iter().filter(|part| part.quick) {
            for need in part.needs {
                assert!(PARTS.iter().any(|p| p.name == *need && p.quick), "{need}");
            }
        }
    }

    #[test]
    fn an_unknown_part_is_an_error_that_names_the_parts() {
        let error = run(&["--only", "nonsense"]).unwrap_err().to_string();
        assert!(error.contains("`nonsense`") && error.contains("clippy"), "{error}");
    }
}
