//! Compares the definitions of a server with the catalogue: "13 of 13 definitions equal version X".

use std::fmt;

use serde::Serialize;

use super::{Catalogue, CatalogueServer};

/// How many definitions equal those of a version in the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CatalogueComparison {
    /// The server of the catalogue.
    pub server: String,
    /// Its version.
    pub version: String,
    /// The day on which it was scanned.
    pub date: String,
    /// How many definitions are equal.
    pub equal: usize,
    /// How many definitions were compared.
    pub of: usize,
    /// Tools whose definition differs.
    pub different: Vec<String>,
    /// Tools that the catalogue does not have.
    pub added: Vec<String>,
    /// Tools that only the catalogue has.
    pub missing: Vec<String>,
}

impl Catalogue {
    /// The server of the catalogue that these tools (name, fingerprint) come from: the one with the
    /// most equal definitions, then with the most equal names. At least half of the names on both
    /// sides must be the same.
    pub fn compare(&self, tools: &[(&str, &str)]) -> Option<CatalogueComparison> {
        let score = |server: &&CatalogueServer| {
            let listed = |name: &str| tools.iter().find(|(listed, _)| *listed == name);
            let known = server.tools.iter();
            let found = known.filter_map(|tool| Some((tool, listed(&tool.name)?)));
            let (mut equal, mut named) = (0_usize, 0_usize);
            for (tool, (_, fingerprint)) in found {
                named += 1;
                equal += usize::from(tool.fingerprint == *fingerprint);
            }
            (equal, named)
        };
        let is_it = |server: &&CatalogueServer| {
            let (equal, named) = score(server);
            equal > 0 || (named > 1 && named * 2 >= tools.len() && named * 2 >= server.tools.len())
        };
        let server = self.servers.iter().filter(is_it).max_by_key(score)?;
        Some(server.compared(tools))
    }
}

impl CatalogueServer {
    fn compared(&self, tools: &[(&str, &str)]) -> CatalogueComparison {
        let mut found = CatalogueComparison {
            server: self.server.clone(),
            version: self.version.clone(),
            date: self.date.clone(),
            equal: 0,
            of: tools.len(),
            different: Vec::new(),
            added: Vec::new(),
            missing: Vec::new(),
        };
        for (name, fingerprint) in tools {
            match self.tool(name) {
                Some(tool) if tool.fingerprint == *fingerprint => found.equal += 1,
                Some(_) => found.different.push((*name).to_owned()),
                None => found.added.push((*name).to_owned()),
            }
        }
        let is_listed = |name: &str| tools.iter().any(|(listed, _)| *listed == name);
        let missing = self.tools.iter().filter(|tool| !is_listed(&tool.name));
        found.missing.extend(missing.map(|tool| tool.name.clone()));
        found
    }
}

impl fmt::Display for CatalogueComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, version, date, equal, of, .. } = self;
        write!(
            f,
            "{equal} of {of} definitions equal version {version} of {server} in the catalogue \
             (scanned {date})"
        )?;
        for (what, names) in
            [("different", &self.different), ("added", &self.added), ("missing", &self.missing)]
        {
            if !names.is_empty() {
                write!(f, "; {what}: {}", some(names))?;
            }
        }
        Ok(())
    }
}

/// The first names and how many more there are.
fn some(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(String::as_str).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
