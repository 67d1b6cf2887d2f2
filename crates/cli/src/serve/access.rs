//! Access: from what the configuration says to what is in force.
//!
//! Policies are read, checked and tested here before anything of them becomes active.
//!
//! Invariant: a document with a problem or a failing test is never in force.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolgate_audit::Hash;
use toolgate_config::{Config, GrantConfig, PolicySource};
use toolgate_gateway::{Access, Grant, InForce};
use toolgate_policy::{Known, Policy, RECOMMENDED, Severity};

use super::sessions;

/// Whoever calls without a token in local mode.
const LOCAL: &str = "local";

/// The files that policies are in, and what they held when they were read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PolicyFiles(Vec<(PathBuf, Option<Vec<u8>>)>);

impl PolicyFiles {
    /// What the files hold now.
    pub(crate) fn read(config: &Config, local: Option<&Path>) -> Self {
        let of_config = config.policies.iter().filter_map(|policy| match &policy.source {
            PolicySource::File(path) => Some(path.as_path()),
            PolicySource::Inline(_) => None,
        });
        let read = |path: &Path| (path.to_owned(), std::fs::read(path).ok());
        Self(of_config.chain(local).map(read).collect())
    }

    /// The folders they are in.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let folder = |path: &PathBuf| match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        self.0.iter().map(|(path, _)| folder(path)).collect()
    }

    fn text(&self, path: &Path) -> Result<String, String> {
        let found = self.0.iter().find(|(other, _)| other == path);
        let bytes = found.and_then(|(_, bytes)| bytes.clone());
        let bytes = bytes.ok_or_else(|| format!("cannot read the policy `{}`", path.display()))?;
        String::from_utf8(bytes)
            .map_err(|_| format!("the policy `{}` is not UTF-8", path.display()))
    }
}

/// What is to be in force; every problem in one text if something is wrong with it. `local` is the
/// policy of local mode, given on the command line.
pub(crate) fn access(
    config: &Config,
    local: Option<&Path>,
    files: &PolicyFiles,
) -> Result<Access, String> {
    let servers = config.servers.iter().map(|server| server.name.clone()).collect();
    let known = Known { servers, tools: None };
    let (mut policies, mut problems) = (HashMap::new(), Vec::new());
    for policy in &config.policies {
        let document = match &policy.source {
            PolicySource::File(path) => {
                files.text(path).map(|text| (path.display().to_string(), text))
            }
            PolicySource::Inline(text) => Ok((format!("policy {}", policy.name), text.clone())),
        };
        let in_force = document.and_then(|(file, text)| load(&policy.name, &file, &text, &known));
        match in_force {
            Ok(in_force) => drop(policies.insert(policy.name.as_str(), in_force)),
            Err(problem) => problems.push(problem),
        }
    }
    let local = match may_be_local(config).then(|| local_grant(local, files, &known)) {
        Some(Err(problem)) => {
            problems.push(problem);
            None
        }
        Some(Ok(grant)) => Some(grant),
        None => None,
    };
    if !problems.is_empty() {
        return Err(problems.join("\n"));
    }
    let by_token = config.grants.iter().map(|grant| (hash(grant), granted(grant, &policies)));
    Ok(Access { local, by_token: by_token.collect() })
}

/// Whether calls without a token may be anybody's.
pub(crate) fn may_be_local(config: &Config) -> bool {
    let listen = &config.listen;
    let addresses = [listen.mcp, listen.sessions, listen.admin, listen.metrics];
    let loopback = addresses.iter().flatten().all(|address| address.ip().is_loopback());
    config.local && config.grants.is_empty() && loopback
}

fn local_grant(
    local: Option<&Path>,
    files: &PolicyFiles,
    known: &Known,
) -> Result<Arc<Grant>, String> {
    let policy = match local {
        Some(path) => {
            let name = path.file_stem().map_or(LOCAL.into(), |stem| stem.to_string_lossy());
            load(&name, &path.display().to_string(), &files.text(path)?, known)?
        }
        None => load("recommended", "recommended", &format!("mode: shadow\n{RECOMMENDED}"), known)?,
    };
    Ok(Arc::new(Grant { label: LOCAL.into(), policy: Some(policy), ..Grant::default() }))
}

fn granted(grant: &GrantConfig, policies: &HashMap<&str, Arc<InForce>>) -> Arc<Grant> {
    let policy = grant.policy.as_deref().and_then(|name| policies.get(name)).cloned();
    Arc::new(Grant {
        label: grant.label.as_str().into(),
        identity: grant.identity.as_deref().map(Into::into),
        groups: grant.groups.clone(),
        sessions: sessions::reach(&grant.sessions),
        servers: grant.servers.as_ref().map(|servers| servers.iter().cloned().collect()),
        policy,
        expires: grant.expires,
    })
}

fn hash(grant: &GrantConfig) -> Hash {
    Hash(*grant.token.as_bytes())
}

/// A policy that was read without an error and has passed its own tests.
fn load(name: &str, file: &str, text: &str, known: &Known) -> Result<Arc<InForce>, String> {
    let loaded = Policy::load(name, text, known);
    for problem in loaded.problems.iter().filter(|problem| problem.severity == Severity::Warning) {
        tracing::warn!(policy = name, "{}", problem.render(file, text));
    }
    let Some(policy) = loaded.policy else {
        let errors = loaded.problems.iter().filter(|problem| problem.severity == Severity::Error);
        return Err(errors
            .map(|problem| problem.render(file, text))
            .collect::<Vec<_>>()
            .join("\n"));
    };
    let report = policy.run_tests();
    let mut failures = String::new();
    for result in &report.results {
        if let Some(failure) = &result.failure {
            // Writing to a String cannot fail.
            let _infallible =
                writeln!(failures, "{file}:{}: test `{}`: {failure}", result.line, result.name);
        }
    }
    if failures.is_empty() { Ok(Arc::new(InForce::new(policy))) } else { Err(failures) }
}
