//! `docs/conformance.md`: what is run, and every known difference with its reason.

use std::fmt::Write as _;

use anyhow::Result;

use super::differences::Differences;
use super::leg::LEGS;
use super::{SESSIONFUL, SESSIONLESS, THROUGH};

const HEAD: &str = "\
# Conformance

The official conformance suite (`@modelcontextprotocol/conformance`, pinned in `tests/peers/node22`) runs against a fixture server,
`crates/testkit/src/conformance.rs`, that passes all of it; then against the same server through toolgate's `/mcp/<server>`, with a grant and a policy.
The run `everything-http` does the same with `@modelcontextprotocol/server-everything`, a server of another project that passes only some checks.
Every check must have the same status through toolgate as without it. `cargo xtask test --only conformance` compares them and prints each difference.

The known differences are listed below with their reasons. The tests fail on a difference that is not listed, and on a listed one that no longer occurs.
This page is generated from `xtask/src/conformance/differences.json` (`UPDATE=1 cargo test -p xtask`).
";

const LEG: &str = "a client behind toolgate, tested by the suite's servers";

/// The scenarios that are not run.
const NOT_RUN: &str = "\
All client scenarios of the suite run, except those for OAuth: toolgate sends a server only the configured `headers:` and requests no token from an authorization server.";

/// The whole page.
pub(super) fn page(differences: &Differences) -> Result<String> {
    let mut page = HEAD.to_owned();
    writeln!(page, "\n| run | what | known differences |\n|---|---|---|")?;
    let legs = LEGS.iter().map(|leg| (leg.name, format!("{}, {LEG}", leg.revision)));
    let runs = THROUGH.iter().map(|run| (run.name, run.what.to_owned())).chain(legs);
    for (name, what) in runs {
        let of_run: Vec<&str> = differences.of(name).map(|(_, check)| check.as_str()).collect();
        let count = match of_run.len() {
            _ if of_run.contains(&"*") => "most of it".to_owned(),
            0 => "none".to_owned(),
            1 => "1 check".to_owned(),
            many => format!("{many} checks"),
        };
        writeln!(page, "| `{name}` | {what} | {count} |")?;
    }
    writeln!(page, "\nThe suite covers protocols {SESSIONFUL} and {SESSIONLESS}. {NOT_RUN}")?;
    for (name, reason) in &differences.reasons {
        writeln!(page, "\n## {name}\n\n{reason}\n\n| scenario | checks | runs |\n|---|---|---|")?;
        for known in differences.known.iter().filter(|known| known.reason == *name) {
            let list = |names: &[String]| {
                names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
            };
            let sometimes = if known.sometimes { " (sometimes)" } else { "" };
            let (checks, runs) = (list(&known.checks), list(&known.runs));
            writeln!(page, "| {} | {checks}{sometimes} | {runs} |", known.scenario)?;
        }
    }
    Ok(page)
}
