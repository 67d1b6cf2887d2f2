//! The catalogue: public MCP servers that were scanned, with the classes and fingerprints of their
//! tools, and a summary of each tool in our own words.
//!
//! `data/catalogue.jsonl` is written by `cargo xtask catalogue`: a line with `server` begins a server,
//! the lines after it are its tools. `data/summaries.tsv` is written by hand.
//!
//! Invariant: nothing of a server's own prose is in the catalogue, only names, counts and digests.
//! Start at [`Catalogue::shipped`].

mod compare;

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::attack::AttackPattern;
use crate::class::{Class, Level};
use crate::hazard::{Hazard, is_declared};
use crate::label::Labels;
use crate::recommend::{Recommended, rule};
use crate::shadow::likeness;
use crate::signal::ASKS_FOR_PERSON;

pub use compare::CatalogueComparison;

/// Servers that were scanned.
#[derive(Debug, Default)]
pub struct Catalogue {
    servers: Vec<CatalogueServer>,
}

/// One version of one server.
#[derive(Debug, Deserialize)]
pub struct CatalogueServer {
    /// How people call it: the last part of its package.
    pub server: String,
    /// `npm` or `pypi`.
    pub registry: String,
    /// Its package.
    pub package: String,
    /// The version that was scanned.
    pub version: String,
    /// The day of the scan.
    pub date: String,
    /// What it is for.
    #[serde(skip)]
    pub summary: String,
    /// Its tools, the riskiest first.
    #[serde(skip)]
    pub tools: Vec<CatalogueTool>,
}

/// One tool of a server.
#[derive(Debug, Deserialize)]
pub struct CatalogueTool {
    /// Its own name.
    pub name: String,
    /// Its class.
    pub class: Class,
    /// How probable it is that the class is right, 0 to 1.
    pub confidence: f64,
    /// How many arguments it has.
    pub parameters: usize,
    /// How many of them are required.
    pub required: usize,
    /// Their names.
    pub arguments: Vec<String>,
    /// What it can do with data.
    pub labels: Labels,
    /// What led to the class.
    pub signals: Vec<CatalogueSignal>,
    /// The attack patterns that apply.
    pub attacks: Vec<AttackPattern>,
    /// The fingerprint of its definition.
    pub fingerprint: String,
    /// Whether its definition has hidden text.
    #[serde(default)]
    pub hidden_text: bool,
    /// What it does, in our own words.
    #[serde(skip)]
    pub summary: String,
    #[serde(skip)]
    hazard: Option<String>,
}

/// A signal: what, where, weight.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(from = "(String, String, u8)")]
pub struct CatalogueSignal {
    /// What was found.
    pub what: String,
    /// Where.
    #[serde(rename = "where")]
    pub place: String,
    /// How much it weighs.
    pub weight: u8,
}

impl From<(String, String, u8)> for CatalogueSignal {
    fn from((what, place, weight): (String, String, u8)) -> Self {
        Self { what, place, weight }
    }
}

/// A server that a search found, with the tools that matched.
#[derive(Debug)]
pub struct CatalogueMatch<'c> {
    /// The server.
    pub server: &'c CatalogueServer,
    /// Its tools that matched; none if the server itself did.
    pub tools: Vec<&'c CatalogueTool>,
}

/// The data of a catalogue is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum BadCatalogue {
    /// A line is not a server and not a tool.
    #[error("line {line} of the catalogue: {why}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// Why.
        why: serde_json::Error,
    },
    /// A tool comes before any server.
    #[error("line {0} of the catalogue is a tool without a server")]
    NoServer(usize),
    /// A summary is missing.
    #[error("`{0}` has no summary")]
    NoSummary(String),
    /// A summary of something that is not in the catalogue.
    #[error("there is a summary of `{0}`, which is not in the catalogue")]
    Unknown(String),
}

static SHIPPED: LazyLock<Catalogue> = LazyLock::new(|| {
    let data = include_str!("../data/catalogue.jsonl");
    // A test reads it; a catalogue that cannot be read knows nothing.
    Catalogue::parse(data, include_str!("../data/summaries.tsv")).unwrap_or_default()
});

impl Catalogue {
    /// The catalogue of this version of toolgate.
    pub fn shipped() -> &'static Self {
        &SHIPPED
    }

    /// Reads a catalogue and its summaries.
    pub fn parse(data: &str, summaries: &str) -> Result<Self, BadCatalogue> {
        let mut servers: Vec<CatalogueServer> = Vec::new();
        for (at, line) in data.lines().enumerate() {
            let bad = |why| BadCatalogue::Line { line: at + 1, why };
            if line.starts_with("{\"server\"") {
                servers.push(serde_json::from_str(line).map_err(bad)?);
                continue;
            }
            let server = servers.last_mut().ok_or(BadCatalogue::NoServer(at + 1))?;
            server.tools.push(serde_json::from_str(line).map_err(bad)?);
        }
        let mut catalogue = Self { servers };
        catalogue.summarise(summaries)?;
        Ok(catalogue)
    }

    fn summarise(&mut self, summaries: &str) -> Result<(), BadCatalogue> {
        let mut texts: HashMap<String, (&str, Option<&str>)> = HashMap::new();
        for line in summaries.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let mut cells = line.split('\t');
            let mut cell = || cells.next().unwrap_or_default();
            let (server, tool, summary) = (cell(), cell(), cell());
            let hazard = cells.next().filter(|hazard| !hazard.is_empty());
            texts.insert(format!("{server}/{tool}"), (summary, hazard));
        }
        for server in &mut self.servers {
            let mut take = |tool: &str| {
                let key = format!("{}/{tool}", server.server);
                texts.remove(&key).ok_or(BadCatalogue::NoSummary(key))
            };
            let (summary, _) = take("-")?;
            for tool in &mut server.tools {
                let (summary, hazard) = take(&tool.name)?;
                summary.clone_into(&mut tool.summary);
                tool.hazard = hazard.map(str::to_owned);
            }
            summary.clone_into(&mut server.summary);
        }
        texts.into_keys().min().map_or(Ok(()), |key| Err(BadCatalogue::Unknown(key)))
    }

    /// All servers, in the order of their names.
    pub fn servers(&self) -> &[CatalogueServer] {
        &self.servers
    }

    /// A server by its name or its package.
    pub fn server(&self, name: &str) -> Option<&CatalogueServer> {
        self.servers.iter().find(|server| server.server == name || server.package == name)
    }

    /// Servers and tools that contain every word: in a name, a package, a summary, a class or a label.
    /// Without words, all servers.
    pub fn search(&self, words: &[String]) -> Vec<CatalogueMatch<'_>> {
        let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
        let has_all = |text: &str| words.iter().all(|word| text.contains(word.as_str()));
        let mut found = Vec::new();
        for server in &self.servers {
            if has_all(&server.text()) {
                found.push(CatalogueMatch { server, tools: Vec::new() });
                continue;
            }
            let tools = server.tools.iter().filter(|tool| has_all(&tool.text(server)));
            let tools: Vec<&CatalogueTool> = tools.collect();
            if !tools.is_empty() {
                found.push(CatalogueMatch { server, tools });
            }
        }
        found
    }

    /// Other servers of the catalogue with a tool of the same or a confusable name.
    pub fn also_in(&self, server: &CatalogueServer, tool: &CatalogueTool) -> Vec<&str> {
        let wanted = likeness(&tool.name);
        let others = self.servers.iter().filter(|other| other.server != server.server);
        others
            .filter(|other| other.tools.iter().any(|tool| likeness(&tool.name) == wanted))
            .map(|other| other.server.as_str())
            .collect()
    }
}

impl CatalogueServer {
    /// A tool by its own name.
    pub fn tool(&self, name: &str) -> Option<&CatalogueTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    fn text(&self) -> String {
        format!("{} {} {}", self.server, self.package, self.summary).to_lowercase()
    }
}

impl CatalogueTool {
    /// The level; a definition with hidden text is critical.
    pub fn level(&self) -> Level {
        if self.hidden_text { Level::Critical } else { self.class.level() }
    }

    /// Whether its definition asks that a person decides first.
    pub fn asks_for_person(&self) -> bool {
        self.signals.iter().any(|signal| signal.what == ASKS_FOR_PERSON)
    }

    /// The recommended rule.
    pub fn recommended(&self) -> Recommended {
        rule(&self.name, self.class, self.asks_for_person(), self.hidden_text)
    }

    /// What could go wrong if an agent calls it unwatched.
    pub fn what_could_go_wrong(&self, server: &str) -> String {
        if let Some(hazard) = &self.hazard {
            return hazard.clone();
        }
        let of_argument = |signal: &'_ CatalogueSignal| signal.place.starts_with("argument ");
        let takes = self.signals.iter().filter(|signal| of_argument(signal));
        Hazard {
            server,
            tool: &self.name,
            class: self.class,
            labels: self.labels,
            arguments: self.arguments.iter().map(String::as_str).collect(),
            takes: takes
                .map(|signal| (signal.what.clone(), signal.place.trim_start_matches("argument ")))
                .collect(),
            asks_for_person: self.asks_for_person(),
            is_declared: is_declared(self.signals.iter().map(|signal| &signal.what)),
        }
        .text()
    }

    fn text(&self, server: &CatalogueServer) -> String {
        let labels: Vec<&str> = self.labels.names().collect();
        let (class, level) = (self.class.as_str(), self.level().as_str());
        let words = [&*self.name, &*self.summary, class, level, &*server.server, &labels.join(" ")];
        words.join(" ").to_lowercase()
    }
}
