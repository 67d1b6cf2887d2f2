//! All real servers on one endpoint: every call of every tour must give the direct result there.
//!
//! One toolgate has all of them attached; each client sees all their tools at `/mcp` and walks the
//! tour of one of them.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, ensure};
use serde_json::{Map, Value, json};

use super::servers::Server;
use super::{Case, Driver, listening, runs, verdict};
use crate::compare::compare_calls;
use crate::gate::Gate;
use crate::peers::copy_scripts;
use crate::report::{each, say};

/// zulipchat-mcp only over HTTP: over stdio every client would start it again, for ten seconds and
/// more.
const TOGETHER: &[Server] = &[
    Server::Everything,
    Server::EverythingHttp,
    Server::Filesystem,
    Server::Memory,
    Server::Git,
    Server::Time,
    Server::ZulipHttp,
];

/// Runs every case against `/mcp` of one toolgate.
pub(crate) fn together() -> Result<()> {
    copy_scripts()?;
    let listening = listening()?;
    let cases =
        || TOGETHER.iter().map(|server| Case { server: *server, driver: Driver::TypeScript });
    let mut entries = Map::new();
    for case in cases() {
        // Created once: children of every client use them concurrently.
        case.server.prepare(&case.work())?;
        entries.insert(case.name(), case.server.gate_entry(&case.work(), &listening));
    }
    let folder = runs().join("together");
    fs::create_dir_all(&folder)?;
    let gate = Gate::start(&folder, &Value::Object(entries))?;
    let answers = AtomicUsize::new(0);
    each(cases().collect(), Case::name, |case| {
        let (name, tour) = (case.name(), case.tour()?);
        let direct = case.read("direct")?.of_direct_walk(&tour);
        let prefix = json!(format!("{name}__"));
        let among = case.walk_as("together", &json!({"url": gate.all()}), &prefix)?;
        let mut differences = among.http_faults();
        let (compared, found) = compare_calls(&tour, case.server.link(), &direct, &among, &name);
        differences.extend(found);
        ensure!(compared > 0, "no call was compared");
        answers.fetch_add(compared, Ordering::Relaxed);
        verdict(&differences)
    })?;
    say(&format!("{} answers compared", answers.into_inner()));
    Ok(())
}
