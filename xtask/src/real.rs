//! Real servers driven by real clients, directly and through toolgate, with compared answers.
//!
//! A case is one server with one client library. Its tour (`tests/peers/tours`) is walked twice
//! directly, which must give the same transcript (otherwise the comparison is invalid), and once
//! through toolgate, which must give that transcript too. [`together()`] does it with all of them
//! on one endpoint. Start at [`direct`] and [`through`].

mod scan;
pub(crate) mod servers;
mod together;

pub(crate) use scan::scan;
pub(crate) use together::together;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value, json};

use self::servers::{Listening, Server};
use crate::compare::{Tour, Transcript, compare};
use crate::gate::Gate;
use crate::peers::{copy_scripts, folder, python, sources};
use crate::process::run_logged;
use crate::report::{each, say};

/// How long one walk may take.
const WALK: Duration = Duration::from_mins(3);
/// Differences shown of one case.
const SHOWN: usize = 25;

#[derive(Clone, Copy, Debug)]
enum Driver {
    TypeScript,
    Python,
}

struct Case {
    server: Server,
    driver: Driver,
}

/// Slow ones first. zulipchat-mcp over stdio costs a start for each walk, so it has one client.
const CASES: &[(Server, &[Driver])] = &[
    (Server::Zulip, &[Driver::TypeScript]),
    (Server::Everything, &[Driver::TypeScript, Driver::Python]),
    (Server::EverythingHttp, &[Driver::TypeScript, Driver::Python]),
    (Server::Filesystem, &[Driver::TypeScript, Driver::Python]),
    (Server::Memory, &[Driver::TypeScript, Driver::Python]),
    (Server::Git, &[Driver::TypeScript, Driver::Python]),
    (Server::Time, &[Driver::TypeScript, Driver::Python]),
    (Server::ZulipHttp, &[Driver::TypeScript, Driver::Python]),
    (Server::Older, &[Driver::Python]),
];

/// Two direct walks of each case are the same.
pub(crate) fn direct() -> Result<()> {
    copy_scripts()?;
    let listening = listening()?;
    each(cases().collect(), Case::name, |case| {
        let target = case.server.direct_entry(&case.work(), &listening);
        let first = case.walk("direct", &target)?;
        let second = case.walk("again", &target)?;
        let tour = case.tour()?;
        let (first, second) = (first.of_direct_walk(&tour), second.of_direct_walk(&tour));
        verdict(&case.compare(&tour, &first, &second))
    })
}

/// A walk through toolgate is the same as the direct one.
pub(crate) fn through() -> Result<()> {
    copy_scripts()?;
    let listening = listening()?;
    let entries: Map<String, Value> = cases()
        .map(|case| (case.name(), case.server.gate_entry(&case.work(), &listening)))
        .collect();
    let gate = Gate::start(&runs(), &Value::Object(entries))?;
    each(cases().collect(), Case::name, |case| {
        let first = case.read("direct")?;
        let second = case.walk("through", &json!({"url": gate.url(&case.name())}))?;
        let tour = case.tour()?;
        let mut differences = second.http_faults();
        differences.extend(case.compare(&tour, &first.of_direct_walk(&tour), &second));
        verdict(&differences)
    })
}

fn cases() -> impl Iterator<Item = Case> {
    CASES.iter().flat_map(|(server, drivers)| {
        drivers.iter().map(|driver| Case { server: *server, driver: *driver })
    })
}

impl Case {
    /// Also the name of the server in toolgate's configuration.
    fn name(&self) -> String {
        let driver = match self.driver {
            Driver::TypeScript => "ts",
            Driver::Python => "py",
        };
        format!("{}-{driver}", self.server.name())
    }

    /// Where the server works.
    fn work(&self) -> PathBuf {
        runs().join(self.name()).join("work")
    }

    fn transcript(&self, walk: &str) -> PathBuf {
        runs().join(self.name()).join(walk).with_extension("json")
    }

    /// Walks the tour against a target and writes the transcript.
    fn walk(&self, walk: &str, target: &Value) -> Result<Transcript> {
        self.server.prepare(&self.work())?;
        self.walk_as(walk, target, &Value::Null)
    }

    /// The same in the existing folder, on an endpoint with a tool prefix.
    fn walk_as(&self, walk: &str, target: &Value, prefix: &Value) -> Result<Transcript> {
        let work = self.work();
        let out = self.transcript(walk);
        let job = json!({
            "tour": self.tour_file(),
            "out": &out,
            "roots": self.server.roots(&work),
            "values": {"work": &work, "case": self.name()},
            "target": target,
            "prefix": prefix,
        });
        let job_file = out.with_extension("job");
        fs::write(&job_file, format!("{job:#}\n"))?;
        if out.exists() {
            fs::remove_file(&out)?;
        }
        let mut command = match self.driver {
            Driver::TypeScript => {
                let mut command = Command::new("node");
                command.arg(folder("node").join("drive.mjs"));
                command
            }
            Driver::Python => {
                let mut command = Command::new(python("client", "python"));
                command.arg(sources().join("python/drive.py")).env("PYTHONDONTWRITEBYTECODE", "1");
                command
            }
        };
        run_logged(command.arg(job_file), &out.with_extension("log"), WALK)?;
        self.read(walk)
    }

    fn read(&self, walk: &str) -> Result<Transcript> {
        let file = self.transcript(walk);
        let text = fs::read_to_string(&file).with_context(|| format!("no `{}`", file.display()))?;
        Transcript::parse(&text)
    }

    fn tour_file(&self) -> PathBuf {
        sources().join("tours").join(self.server.tour()).with_extension("json")
    }

    fn tour(&self) -> Result<Tour> {
        Tour::parse(&fs::read_to_string(self.tour_file())?)
    }

    fn compare(&self, tour: &Tour, direct: &Transcript, through: &Transcript) -> Vec<String> {
        compare(tour, self.server.link(), direct, through)
    }
}

fn verdict(differences: &[String]) -> Result<()> {
    let shown: Vec<&str> = differences.iter().take(SHOWN).map(String::as_str).collect();
    ensure!(
        differences.is_empty(),
        "  {} differences:\n    {}",
        differences.len(),
        shown.join("\n    ")
    );
    Ok(())
}

fn listening() -> Result<Listening> {
    let start = Instant::now();
    let listening = Listening::start(&runs().join("listening"))?;
    say(&format!("the HTTP servers listen after {:.1} s", start.elapsed().as_secs_f64()));
    Ok(listening)
}

fn runs() -> PathBuf {
    folder("runs")
}
