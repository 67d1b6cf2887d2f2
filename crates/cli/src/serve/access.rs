//! Access: from what the file and the store say to what is in force.
//!
//! Policies are read, checked and tested here before anything of them becomes active; what was
//! compiled once is kept as long as its text stays. A text that passed its tests once, here or where
//! it was put, is not tested again: tests may take seconds, for which no revocation must wait.
//!
//! Invariant: a document with a problem or a failing test is never in force. One of the file keeps
//! the whole file from becoming active; one of the store denies its own grants.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolgate_admin::{Tried, two_seconds};
use toolgate_audit::Hash;
use toolgate_config::{Config, GrantConfig, Listen, PolicySource};
use toolgate_gateway::{Access, Frozen, Grant, InForce};
use toolgate_policy::{Known, Policy, RECOMMENDED, Severity};
use toolgate_store::{self as store, Snapshot};

use super::edits::Meanings;
use super::sessions;
use crate::trusted;

/// Whoever calls without a token in local mode.
const LOCAL: &str = "local";

/// The policy that is there without anybody having written it.
pub(crate) const BUILT_IN: &str = "recommended";

/// The files that policies are in, and what they held when they were read.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct PolicyFiles(Vec<(PathBuf, Result<Vec<u8>, String>)>);

impl PolicyFiles {
    /// What the files hold now.
    pub(crate) fn read(config: &Config, local: Option<&Path>) -> Self {
        let of_config = config.policies.iter().filter_map(|policy| match &policy.source {
            PolicySource::File(path) => Some(path.as_path()),
            PolicySource::Inline(_) => None,
        });
        let read =
            |path: &Path| (path.to_owned(), trusted::read(path).map_err(|why| why_not(&why)));
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
        let bytes =
            found.map_or_else(|| Err("it was not read".to_owned()), |(_, read)| read.clone());
        let bytes =
            bytes.map_err(|why| format!("cannot read the policy `{}`: {why}", path.display()))?;
        String::from_utf8(bytes)
            .map_err(|_| format!("the policy `{}` is not UTF-8", path.display()))
    }
}

/// Why a policy cannot be read.
fn why_not(error: &io::Error) -> String {
    match (error.kind(), error.get_ref()) {
        (_, Some(why)) => why.to_string(),
        (io::ErrorKind::NotFound, _) => "no such file".to_owned(),
        (io::ErrorKind::IsADirectory, _) => "it is a folder".to_owned(),
        _ => "it cannot be opened".to_owned(),
    }
}

/// What the file says.
#[derive(Debug, Clone)]
pub(crate) struct FileSide {
    pub(crate) config: Config,
    pub(crate) policies: PolicyFiles,
    /// The policy of local mode, given on the command line.
    pub(crate) local_policy: Option<PathBuf>,
}

/// Where a text was tested before.
pub(crate) struct Tests<'a> {
    /// What was put here.
    pub(crate) tried: &'a Tried,
    /// Nothing is in force yet: also what is kept is tested.
    pub(crate) at_start: bool,
}

/// Policies that were compiled, by all that they depend on.
#[derive(Debug, Default, Clone)]
pub(crate) struct Compiled(HashMap<Source, Arc<InForce>>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Source {
    name: String,
    version: Option<u64>,
    text: String,
    servers: Vec<String>,
}

/// The policies of both sides.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    /// What each name stands for.
    pub(crate) by_name: HashMap<String, Arc<InForce>>,
    /// The texts of those of the file, in its order.
    pub(crate) of_file: Vec<(String, String)>,
    /// What decides calls without a token, in local mode.
    local: Option<Arc<InForce>>,
    pub(crate) compiled: Compiled,
}

impl Policies {
    /// What those of the file, and that of the command line, mean.
    pub(crate) fn meanings(&self, file: &FileSide) -> Meanings {
        let of_file = self.of_file.iter().filter_map(|(name, _)| self.by_name.get(name));
        let local = self.local.iter().filter(|_| file.local_policy.is_some());
        let all = of_file.chain(local).map(|in_force| &in_force.policy);
        all.map(|policy| (policy.name().to_owned(), policy.hash().to_owned())).collect()
    }
}

/// Reads and compiles the policies; what is wrong with those of the file in one text.
pub(crate) fn policies(
    file: &FileSide,
    snapshot: &Snapshot,
    is_local: bool,
    servers: &[String],
    before: (&Compiled, &Tests<'_>),
) -> Result<Policies, String> {
    let known = Known { servers: servers.to_vec(), tools: None };
    let (mut made, mut problems) = (Policies::default(), Vec::new());
    for policy in &file.config.policies {
        let document = match &policy.source {
            PolicySource::File(path) => {
                file.policies.text(path).map(|text| (path.display().to_string(), text))
            }
            PolicySource::Inline(text) => Ok((format!("policy {}", policy.name), text.clone())),
        };
        let in_force = document.and_then(|(shown, text)| {
            made.of_file.push((policy.name.clone(), text.trim_start_matches('\n').to_owned()));
            made.compiled.compile(before, &policy.name, None, &shown, &text, &known)
        });
        match in_force {
            Ok(in_force) => drop(made.by_name.insert(policy.name.clone(), in_force)),
            Err(problem) => problems.push(problem),
        }
    }
    if is_local {
        match local_policy(file, &known, before, &mut made.compiled) {
            Ok(policy) => made.local = Some(policy),
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        return Err(problems.join("\n"));
    }
    for kept in &snapshot.policies {
        if made.by_name.contains_key(&*kept.name) {
            tracing::warn!(policy = %kept.name, "toolgate.yaml has a policy of this name, which counts");
            continue;
        }
        let shown = format!("policy {} (version {})", kept.name, kept.version);
        let version = Some(kept.version);
        match made.compiled.compile(before, &kept.name, version, &shown, &kept.document, &known) {
            Ok(in_force) => drop(made.by_name.insert(kept.name.to_string(), in_force)),
            Err(problem) => {
                tracing::error!(
                    "a kept policy cannot be used; its grants are denied everything:\n{problem}"
                );
            }
        }
    }
    if !made.by_name.contains_key(BUILT_IN) {
        let built_in =
            made.compiled.compile(before, BUILT_IN, None, BUILT_IN, RECOMMENDED, &known)?;
        made.by_name.insert(BUILT_IN.to_owned(), built_in);
    }
    Ok(made)
}

/// What is to be in force; a mistake in one text.
pub(crate) fn access(
    file: &FileSide,
    snapshot: &Snapshot,
    policies: &Policies,
) -> Result<Access, String> {
    let local = policies.local.as_ref().map(|policy| {
        let policy = Some(Arc::clone(policy));
        Arc::new(Grant { label: LOCAL.into(), policy, ..Grant::default() })
    });
    let revoked: HashSet<&str> = snapshot
        .grants
        .iter()
        .filter(|grant| grant.revoked.is_some())
        .map(|grant| &*grant.label)
        .collect();
    let of_store = |grant: &&store::StoredGrant| grant.revoked.is_none();
    for grant in snapshot.grants.iter().filter(of_store) {
        if file.config.grants.iter().any(|other| other.label == *grant.label) {
            return Err(format!(
                "the label `{}` of a grant in toolgate.yaml is taken by a grant that was made at \
                 run time; choose another, or revoke that one first",
                grant.label
            ));
        }
    }
    let in_file = file.config.grants.iter().filter(|grant| !revoked.contains(&*grant.label));
    let in_file = in_file.map(|grant| (Hash(*grant.token.as_bytes()), granted(grant, policies)));
    let in_store = snapshot.grants.iter().filter(of_store);
    let in_store = in_store.map(|grant| (grant.token, kept_grant(grant, policies)));
    let mut access = Access::new(local, in_file.chain(in_store));
    access.generation = Some(snapshot.generation);
    access.frozen = frozen(snapshot);
    Ok(access)
}

/// Whether calls without a token could be anybody's: what the file, and where toolgate listens, have
/// to say about it.
pub(crate) fn may_be_local(config: &Config, listen: &Listen) -> bool {
    let addresses = [listen.mcp, listen.sessions, listen.admin, listen.metrics];
    let loopback = addresses.iter().flatten().all(|address| address.ip().is_loopback());
    config.local && loopback
}

fn frozen(snapshot: &Snapshot) -> Frozen {
    let mut frozen = Frozen::default();
    for freeze in &snapshot.freezes {
        match &freeze.what {
            store::FreezeTarget::All => frozen.all = true,
            store::FreezeTarget::Grant(label) => drop(frozen.grants.insert(Arc::clone(label))),
            store::FreezeTarget::Server(name) => drop(frozen.servers.insert(Arc::clone(name))),
            store::FreezeTarget::Session(id) => drop(frozen.sessions.insert(Arc::clone(id))),
        }
    }
    frozen
}

fn local_policy(
    file: &FileSide,
    known: &Known,
    before: (&Compiled, &Tests<'_>),
    compiled: &mut Compiled,
) -> Result<Arc<InForce>, String> {
    let Some(path) = &file.local_policy else {
        let text = format!("mode: shadow\n{RECOMMENDED}");
        return compiled.compile(before, BUILT_IN, None, BUILT_IN, &text, known);
    };
    let name = path.file_stem().map_or(LOCAL.into(), |stem| stem.to_string_lossy());
    let text = file.policies.text(path)?;
    compiled.compile(before, &name, None, &path.display().to_string(), &text, known)
}

fn granted(grant: &GrantConfig, policies: &Policies) -> Arc<Grant> {
    let policy = grant.policy.as_ref().and_then(|name| policies.by_name.get(name)).cloned();
    Arc::new(Grant {
        label: grant.label.as_str().into(),
        identity: grant.identity.as_deref().map(Into::into),
        groups: grant.groups.clone(),
        sessions: sessions::reach(&grant.sessions),
        servers: grant.servers.as_ref().map(|servers| servers.iter().cloned().collect()),
        policy,
        expires: grant.expires,
        ..Grant::default()
    })
}

fn kept_grant(grant: &store::StoredGrant, policies: &Policies) -> Arc<Grant> {
    let policy = grant.policy.as_ref().and_then(|name| policies.by_name.get(&**name)).cloned();
    Arc::new(Grant {
        id: Some(Arc::clone(&grant.id)),
        label: Arc::clone(&grant.label),
        identity: grant.identity.clone(),
        groups: grant.groups.clone(),
        servers: grant.servers.as_ref().map(|servers| servers.iter().cloned().collect()),
        sessions: grant.sessions.as_deref().map(sessions::kept_reach).unwrap_or_default(),
        policy,
        expires: grant.expires,
        ..Grant::default()
    })
}

// === impl Compiled ===

impl Compiled {
    fn compile(
        &mut self,
        (before, tests): (&Self, &Tests<'_>),
        name: &str,
        version: Option<u64>,
        shown: &str,
        text: &str,
        known: &Known,
    ) -> Result<Arc<InForce>, String> {
        let (name, servers) = (name.to_owned(), known.servers.clone());
        let key = Source { name, version, text: text.to_owned(), servers };
        let in_force = if let Some(same) = before.0.get(&key) {
            Arc::clone(same)
        } else {
            let policy = match tests.tried.find(&key.name, text, &known.servers) {
                Some(policy) => policy,
                None => Arc::new(load(shown, &key, known, before.must_test(&key, tests))?),
            };
            Arc::new(InForce::of_version(policy, version))
        };
        self.0.insert(key, Arc::clone(&in_force));
        Ok(in_force)
    }

    /// Takes over what was compiled aside.
    pub(crate) fn adopt(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Whether this text was not tested before. What is kept was, by the process that it was put
    /// in.
    fn must_test(&self, source: &Source, tests: &Tests<'_>) -> bool {
        let same = |it: &Source| it.name == source.name && it.text == source.text;
        let tested = self.0.keys().any(same) || source.version.is_some();
        tests.at_start || !tested
    }
}

/// A policy that was read without an error and has passed its own tests.
fn load(file: &str, source: &Source, known: &Known, tested: bool) -> Result<Policy, String> {
    let Source { name, text, .. } = source;
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
    if !tested {
        return Ok(policy);
    }
    let report = policy.run_tests_while(&two_seconds());
    let mut failures = String::new();
    for result in &report.results {
        if let Some(failure) = &result.failure {
            // Writing to a String cannot fail.
            let _infallible =
                writeln!(failures, "{file}:{}: test `{}`: {failure}", result.line, result.name);
        }
    }
    if failures.is_empty() { Ok(policy) } else { Err(failures) }
}
