//! The official conformance suite against two servers, directly and through toolgate.
//!
//! Direct runs establish what a server achieves on its own. Our fixture
//! (`crates/testkit/src/conformance.rs`) must pass every check; server-everything, which this
//! project did not write, passes some. Every other run must give exactly that, check by check; known
//! differences are in `differences.json` with their reason, are rendered in `docs/conformance.md`,
//! and fail the run once they are equal again. toolgate runs with a grant and a policy; the suite
//! cannot send a token, so a front adds it. In `leg` the suite tests a client through toolgate.
//! Start at [`run`].

mod checks;
mod differences;
mod leg;
#[cfg(test)]
mod page;
mod peers;

use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;

use anyhow::{Context as _, Result, ensure};

use self::checks::Checks;
use self::differences::Differences;
use self::leg::LEGS;
use self::peers::{Fixture, Front, Suite};
use crate::cargo::cargo;
use crate::gate::Gate;
use crate::peers::folder;
use crate::real::servers::start_everything;
use crate::report::{each, say};

/// The revisions of the protocol that the suite knows the requirements of.
const SESSIONFUL: &str = "2025-11-25";
const SESSIONLESS: &str = "2026-07-28";

/// One run of the suite through toolgate.
#[derive(Clone, Copy)]
struct Through {
    name: &'static str,
    revision: &'static str,
    /// The server of toolgate's configuration.
    server: &'static str,
    what: &'static str,
}

/// The server that this project did not write.
const EVERYTHING: &str = "everything";

/// Slow ones first.
const THROUGH: &[Through] = &[
    Through {
        name: "everything-http",
        revision: SESSIONFUL,
        server: EVERYTHING,
        what: "2025-11-25, server-everything over HTTP",
    },
    Through {
        name: "sessionless-http",
        revision: SESSIONLESS,
        server: "both",
        what: "2026-07-28, the fixture over HTTP",
    },
    Through {
        name: "sessionless-stdio",
        revision: SESSIONLESS,
        server: "child",
        what: "2026-07-28, the fixture as a child",
    },
    Through {
        name: "sessionless-to-sessionful",
        revision: SESSIONLESS,
        server: "sessionful",
        what: "2026-07-28, the fixture speaks only older protocols",
    },
    Through {
        name: "sessionful-http",
        revision: SESSIONFUL,
        server: "both",
        what: "2025-11-25, the fixture over HTTP",
    },
    Through {
        name: "sessionful-stdio",
        revision: SESSIONFUL,
        server: "child",
        what: "2025-11-25, the fixture as a child",
    },
    Through {
        name: "sessionful-to-sessionless",
        revision: SESSIONFUL,
        server: "sessionless",
        what: "2025-11-25, the fixture speaks only 2026-07-28",
    },
];

/// The part `conformance`.
pub(crate) fn run() -> Result<()> {
    // Built by the part `unit`, with the same features.
    let mut build = cargo();
    build.args(["test", "--workspace", "--quiet", "--no-run"]);
    build.args(["--test", "conformance", "--test", "rmcp"]);
    crate::process::run(&mut build)?;

    let work = folder("runs").join("conformance");
    fs::create_dir_all(&work)?;
    let suite = Suite::find(&work)?;
    let both = Fixture::start(&work, "both")?;
    let (_everything, everything_url) = start_everything(&work)?.listens()?;
    let mut direct = direct(&suite, &both)?;
    let alone = suite.run("direct-everything", SESSIONFUL, &everything_url)?.checks;
    say(&format!("        direct-everything: {}", alone.summary()));
    direct.insert(EVERYTHING, alone);

    let (sessionful, sessionless) =
        (Fixture::start(&work, "sessionful")?, Fixture::start(&work, "sessionless")?);
    let servers = serde_json::json!({
        "both": {"url": both.url},
        "child": {"command": peers::fixture(), "args": ["stdio"]},
        EVERYTHING: {"url": everything_url},
        "sessionful": {"url": sessionful.url},
        "sessionless": {"url": sessionless.url},
    });
    let gate = Gate::start_with_grant(&work, &servers, peers::TOKEN)?;
    let front = Front::start(&work, &gate)?;
    let differences = Differences::read()?;
    each(
        THROUGH.to_vec(),
        |run| run.name.to_owned(),
        |run| {
            let url = front.url(run.server);
            let found = suite.run(run.name, run.revision, &url)?.checks;
            let alone = if run.server == EVERYTHING { EVERYTHING } else { run.revision };
            let direct = direct.get(alone).context("no direct run")?;
            say(&format!("        {}: {} ({})", run.name, found.summary(), run.what));
            differences.judge(run.name, direct, &found)
        },
    )?;
    each(LEGS.to_vec(), |leg| leg.name.to_owned(), |leg| leg.run(&suite, &differences))
}

/// The results of our fixture alone, by revision; nothing may fail.
fn direct(suite: &Suite, fixture: &Fixture) -> Result<BTreeMap<&'static str, Checks>> {
    let found = Mutex::new(BTreeMap::new());
    each(
        vec![SESSIONFUL, SESSIONLESS],
        |revision| format!("direct-{revision}"),
        |revision| {
            let run = suite.run(&format!("direct-{revision}"), revision, &fixture.url)?;
            say(&format!("        direct-{revision}: {}", run.checks.summary()));
            let failed = run.checks.failed();
            ensure!(
                failed.is_empty(),
                "  the fixture itself fails:\n    {}",
                failed.join("\n    ")
            );
            run.succeeded?;
            found
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .insert(*revision, run.checks);
            Ok(())
        },
    )?;
    Ok(found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
}

#[cfg(test)]
mod tests;
