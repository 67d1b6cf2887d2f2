//! `cargo xtask catalogue [NAME…]`: scans public MCP servers for the catalogue.
//!
//! `crates/catalog/data/servers.tsv` lists them with exact versions. Each is installed into a temporary
//! folder, scanned with `toolgate scan`, and its folder is removed. The result replaces the lines of
//! that server in `crates/catalog/data/catalogue.jsonl`. Summaries are written by hand, in
//! `summaries.tsv` beside it.
//!
//! Invariant: one server at a time; install scripts of packages do not run; a server gets an empty home
//! folder and no credentials. A server that fails keeps its earlier lines and fails the run.
//! Start at [`run`].

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::cargo::cargo;
use crate::gate::debug_binary;
use crate::process::{output, run as run_command, run_logged};
use crate::report::say;
use crate::root;

/// How long one installation may take.
const INSTALL: Duration = Duration::from_mins(15);

/// One line of `servers.tsv`.
struct Entry {
    name: String,
    registry: String,
    package: String,
    version: String,
    program: Option<String>,
    args: Vec<String>,
}

#[derive(Serialize)]
struct Target<'a> {
    server: &'a str,
    registry: &'a str,
    package: &'a str,
    version: &'a str,
    date: &'a str,
    /// The digest of the classes that the classifier assigns to the labelled tools, below.
    classifier: &'a str,
}

/// The result of `scan -o json`.
#[derive(Deserialize)]
struct Scan {
    tools: Vec<ScannedTool>,
}

#[derive(Deserialize)]
struct ScannedTool {
    name: String,
    class: String,
    confidence: f64,
    parameters: usize,
    required: usize,
    arguments: Vec<String>,
    labels: Vec<String>,
    signals: Vec<Signal>,
    attacks: Vec<String>,
    fingerprint: String,
    #[serde(default)]
    hidden_text: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Signal {
    what: String,
    #[serde(rename = "where")]
    place: String,
    weight: u8,
}

/// One tool in the catalogue.
#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    class: &'a str,
    confidence: f64,
    parameters: usize,
    required: usize,
    arguments: &'a [String],
    labels: &'a [String],
    signals: Vec<(&'a str, &'a str, u8)>,
    attacks: &'a [String],
    fingerprint: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    hidden_text: bool,
}

pub(crate) fn run(names: &[&str]) -> Result<()> {
    let entries = entries()?;
    let unknown = names.iter().find(|name| !entries.iter().any(|entry| entry.name == **name));
    if let Some(name) = unknown {
        bail!("`{name}` is not in `{}`", file("servers.tsv").display());
    }
    run_command(cargo().args(["build", "--workspace", "--bin", "toolgate"]))?;
    let date = output(Command::new("date").args(["-u", "+%F"]))?;
    let classes = root().join("crates/catalog/tests/data/classes.tsv");
    let digest = output(Command::new("sha256sum").arg(classes))?;
    let classifier = digest.split(' ').next().context("`sha256sum` printed nothing")?;
    let mut failed = Vec::new();
    let wanted =
        entries.iter().filter(|entry| names.is_empty() || names.contains(&entry.name.as_str()));
    for entry in wanted {
        match entry.scan(date.trim(), classifier) {
            Ok(lines) => {
                say(&format!("{}: {} tools", entry.name, lines.len().saturating_sub(1)));
                replace(&entries, &entry.name, &lines)?;
            }
            Err(why) => {
                say(&format!("{}: {why:#}", entry.name));
                failed.push(entry.name.as_str());
            }
        }
    }
    ensure!(failed.is_empty(), "not scanned: {}", failed.join(", "));
    Ok(())
}

fn file(name: &str) -> PathBuf {
    root().join("crates/catalog/data").join(name)
}

fn entries() -> Result<Vec<Entry>> {
    let text = fs::read_to_string(file("servers.tsv"))?;
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let entry = |line: &str| {
        let mut cells = line.split('\t').map(str::to_owned);
        let mut cell = || cells.next().with_context(|| format!("`{line}`: five cells or more"));
        let (name, registry, package) = (cell()?, cell()?, cell()?);
        let (version, program) = (cell()?, cell()?);
        let program = Some(program).filter(|program| program != "-");
        Ok(Entry { name, registry, package, version, program, args: cells.collect() })
    };
    lines.map(entry).collect()
}

impl Entry {
    /// Installs and scans the server; its lines of the catalogue.
    fn scan(&self, date: &str, classifier: &str) -> Result<Vec<String>> {
        let folder = std::env::temp_dir().join(format!(
            "toolgate-catalogue-{}-{}",
            std::process::id(),
            self.name
        ));
        fs::create_dir_all(folder.join("home"))?;
        let scanned = self.install(&folder).and_then(|command| self.scan_in(&folder, &command));
        fs::remove_dir_all(&folder)?;
        self.lines(&scanned?, date, classifier)
    }

    fn install(&self, folder: &Path) -> Result<Vec<String>> {
        let log = folder.join("install.log");
        let Self { package, version, .. } = self;
        if self.registry == "npm" {
            let mut npm = Command::new("npm");
            npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]);
            run_logged(npm.arg(folder).arg(format!("{package}@{version}")), &log, INSTALL)?;
            let script = self.script(&folder.join("node_modules").join(package))?;
            return Ok(vec!["node".to_owned(), script.display().to_string()]);
        }
        ensure!(self.registry == "pypi", "unknown registry `{}`", self.registry);
        let venv = folder.join("venv");
        run_logged(Command::new("python3").args(["-m", "venv"]).arg(&venv), &log, INSTALL)?;
        let mut pip = Command::new(venv.join("bin/pip"));
        pip.args(["install", "--disable-pip-version-check", "--only-binary", ":all:"]);
        run_logged(pip.arg(format!("{package}=={version}")), &log, INSTALL)?;
        let program = self.program.as_deref().unwrap_or(package);
        Ok(vec![venv.join("bin").join(program).display().to_string()])
    }

    /// The program of an npm package.
    fn script(&self, package: &Path) -> Result<PathBuf> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Bin {
            One(String),
            Many(BTreeMap<String, String>),
        }
        #[derive(Deserialize)]
        struct Manifest {
            bin: Bin,
        }
        let text = fs::read_to_string(package.join("package.json"))?;
        let manifest: Manifest = serde_json::from_str(&text).context("package.json")?;
        let script = match manifest.bin {
            Bin::One(script) => Some(script),
            Bin::Many(many) => match &self.program {
                Some(program) => many.get(program).cloned(),
                None => many.into_values().next(),
            },
        };
        Ok(package.join(script.context("the package has no such program")?))
    }

    fn scan_in(&self, folder: &Path, command: &[String]) -> Result<Scan> {
        let home = folder.join("home");
        let mut scan = Command::new(debug_binary());
        scan.args(["scan", "-o", "json", "--"]).args(command);
        let in_home = |arg: &String| arg.replace("{home}", &home.display().to_string());
        scan.args(self.args.iter().map(in_home));
        scan.env("HOME", &home).current_dir(&home);
        Ok(serde_json::from_str(&output(&mut scan)?)?)
    }

    fn lines(&self, scan: &Scan, date: &str, classifier: &str) -> Result<Vec<String>> {
        ensure!(!scan.tools.is_empty(), "it lists no tools");
        let Self { name, registry, package, version, .. } = self;
        let server = Target { server: name, registry, package, version, date, classifier };
        let mut lines = vec![serde_json::to_string(&server)?];
        for tool in &scan.tools {
            let signals = tool.signals.iter();
            lines.push(serde_json::to_string(&Tool {
                name: &tool.name,
                class: &tool.class,
                confidence: tool.confidence,
                parameters: tool.parameters,
                required: tool.required,
                arguments: &tool.arguments,
                labels: &tool.labels,
                signals: signals.map(|s| (s.what.as_str(), s.place.as_str(), s.weight)).collect(),
                attacks: &tool.attacks,
                fingerprint: &tool.fingerprint,
                hidden_text: !tool.hidden_text.is_empty(),
            })?);
        }
        Ok(lines)
    }
}

/// Replaces the lines of one server; servers that are no longer listed are removed.
fn replace(entries: &[Entry], name: &str, lines: &[String]) -> Result<()> {
    let path = file("catalogue.jsonl");
    let text = fs::read_to_string(&path).unwrap_or_default();
    let mut blocks: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("{\"server\":\"") {
            rest.split('"').next().unwrap_or_default().clone_into(&mut current);
        }
        blocks.entry(current.clone()).or_default().push(line);
    }
    blocks.insert(name.to_owned(), lines.iter().map(String::as_str).collect());
    blocks.retain(|name, _| entries.iter().any(|entry| entry.name == *name));
    let all: Vec<&str> = blocks.into_values().flatten().collect();
    fs::write(&path, format!("{}\n", all.join("\n")))?;
    Ok(())
}
