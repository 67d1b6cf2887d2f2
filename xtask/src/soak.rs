//! `cargo xtask soak [PART | FUZZ_SECONDS]`: the counts that are too heavy for every run.
//!
//! Start at [`PARTS`]. Without arguments all of them run, and every fuzz target for a long time.

use anyhow::Result;

use crate::fuzz;
use crate::mutants;
use crate::process::run as run_command;
use crate::report::say;
use crate::root;

const FUZZ_SECONDS: &str = "900";

/// A test that is run with a heavier count.
struct Part {
    name: &'static str,
    what: &'static str,
    package: &'static str,
    /// Arguments of `cargo test`.
    words: &'static [&'static str],
    /// The variable with the count, and its value.
    count: (&'static str, &'static str),
}

const PARTS: [Part; 9] = [
    Part {
        name: "storm",
        what: "a storm of 1,000 agents that all count from nought",
        package: "toolgate-gateway",
        words: &["--release", "storm"],
        count: ("TOOLGATE_SOAK", "1"),
    },
    Part {
        name: "misroute",
        what: "a thousand clients of the whole binary, every answer at the right one",
        package: "toolgate",
        words: &["--release", "--test", "misroute", "not_one_answer"],
        count: ("TOOLGATE_MISROUTE", "1000000"),
    },
    Part {
        name: "policy",
        what: "random policies against the naive interpreter",
        package: "toolgate-policy",
        words: &["--release"],
        count: ("TOOLGATE_POLICY_WORLDS", "2000000"),
    },
    // Not a release build, which has no failpoints.
    Part {
        name: "kill",
        what: "kill -9 under load, and everything still adds up",
        package: "toolgate",
        words: &["--test", "proof", "kills", "--", "--nocapture"],
        count: ("TOOLGATE_KILLS", "10000"),
    },
    Part {
        name: "approval-kill",
        what: "kill -9 between hold, approval and send: the call runs once or not at all",
        package: "toolgate",
        words: &["--test", "proof", "survives_kills", "--", "--nocapture"],
        count: ("TOOLGATE_APPROVAL_KILLS", "400"),
    },
    Part {
        name: "redeem",
        what: "64 agents redeem one approval, a thousand times",
        package: "toolgate",
        words: &["--release", "--test", "proof", "redeemed_once", "--", "--nocapture"],
        count: ("TOOLGATE_REDEMPTIONS", "1000"),
    },
    Part {
        name: "exact",
        what: "a limit of N admits N, over processes and restarts",
        package: "toolgate",
        words: &["--release", "--test", "proof", "exact", "--", "--nocapture"],
        count: ("TOOLGATE_TRIALS", "1000"),
    },
    Part {
        name: "flaps",
        what: "server channels that come back every second, a minute long, with calls going on",
        package: "toolgate",
        words: &["--release", "--test", "e2e", "flapping"],
        count: ("TOOLGATE_FLAPS", "60"),
    },
    Part {
        name: "reload",
        what: "policies change under load",
        package: "toolgate",
        words: &["--release", "--test", "proof", "reload", "--", "--nocapture"],
        count: ("TOOLGATE_RELOADS", "1000"),
    },
];

pub(crate) fn run(words: &[&str]) -> Result<()> {
    if words == ["mutants"] {
        return mutants::run(&["all"]);
    }
    if let [name] = words
        && let Some(part) = PARTS.iter().find(|part| part.name == *name)
    {
        return part.run();
    }
    PARTS.iter().try_for_each(Part::run)?;
    mutants::run(&["all"])?;
    say("fuzzing");
    fuzz::run(if words.is_empty() { &[FUZZ_SECONDS] } else { words })
}

impl Part {
    fn run(&self) -> Result<()> {
        say(&format!("{}: {}", self.name, self.what));
        let (variable, count) = self.count;
        let mut command = std::process::Command::new("cargo");
        command.args(["test", "--package", self.package]).args(self.words).current_dir(root());
        // A value in the environment takes precedence.
        if std::env::var_os(variable).is_none() {
            command.env(variable, count);
        }
        run_command(&mut command)
    }
}
