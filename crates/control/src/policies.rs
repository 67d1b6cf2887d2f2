//! The policies of file and store, loaded and tested before they become active.
//!
//! A policy of the file takes precedence over one of the store of the same name, and both over the
//! built-in one. A compiled policy is kept as long as its text stays. A text that passed its tests
//! once, here or when it was put, is not tested again: tests may take seconds, and no revocation
//! must wait for them.
//!
//! Invariant: a document with an error or a failing test is never active. One of the file keeps the
//! whole file from becoming active; one of the store denies everything to its own grants.
//!
//! Start at [`policies`].

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolgate_config::{Config, PolicySource, not_utf8};
use toolgate_gateway::ActivePolicy;
use toolgate_policy::{Known, Policy, RECOMMENDED};
use toolgate_store::Snapshot;

use crate::checked_policies::CheckedPolicies;
use crate::inputs::Inputs;
use crate::policy_check::{self, Rejected};
use crate::trusted;

/// The name of calls without a token.
pub const LOCAL: &str = "local";

/// The name of the built-in policy.
pub const BUILT_IN: &str = "recommended";

/// Policies of the file and of the command line, by name: the hash of what each means.
pub(crate) type Meanings = BTreeMap<String, String>;

/// The settings of the file and the command line.
#[derive(Debug, Clone)]
pub struct FileState {
    /// `toolgate.yaml`, or the defaults.
    pub config: Config,
    /// The content of the policy files.
    pub policies: PolicyFiles,
    /// The policy of local mode, named on the command line.
    pub local_policy: Option<PathBuf>,
}

/// Policy files with their content.
#[derive(Debug, Default, Clone)]
pub struct PolicyFiles(Vec<(PathBuf, FileContent)>);

type FileContent = Result<Vec<u8>, Arc<io::Error>>;

/// Why a policy of the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file cannot be read.
    #[error("cannot read the policy `{}`: {}", .0.display(), plainly(.1))]
    Unreadable(PathBuf, Arc<io::Error>),
    /// The file is not UTF-8; why, and what to do.
    #[error("the policy `{}` cannot be used: {}", .0.display(), .1)]
    NotUtf8(PathBuf, &'static str),
    /// The document is not valid, or fails its own tests.
    #[error(transparent)]
    Rejected(#[from] Rejected),
}

/// Every policy of the file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct PolicyErrors(pub Vec<PolicyError>);

/// What was compiled or checked before.
pub(crate) struct Before<'a> {
    pub(crate) compiled: &'a Compiled,
    pub(crate) checked: &'a CheckedPolicies,
    /// Nothing is active yet: policies of the store are tested too.
    pub(crate) is_start: bool,
}

/// Compiled policies, by everything that they depend on.
#[derive(Debug, Default, Clone)]
pub(crate) struct Compiled(HashMap<Source, Arc<ActivePolicy>>);

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
    /// The active policy of each name.
    pub(crate) by_name: HashMap<String, Arc<ActivePolicy>>,
    /// The documents of the file, in its order.
    pub(crate) of_file: Vec<(String, String)>,
    /// The policy of calls without a token, in local mode.
    pub(crate) local: Option<Arc<ActivePolicy>>,
    pub(crate) compiled: Compiled,
}

impl PolicyFiles {
    /// Reads the policy files and records them.
    pub fn read(config: &Config, local: Option<&Path>, inputs: &mut Inputs) -> Self {
        let of_config = config.policies.iter().filter_map(|policy| match &policy.source {
            PolicySource::File(path) => Some(path.as_path()),
            PolicySource::Inline(_) => None,
        });
        let read = |path: &Path| {
            let read = trusted::read(path);
            inputs.record(path, &read);
            (path.to_owned(), read.map_err(Arc::new))
        };
        Self(of_config.chain(local).map(read).collect())
    }

    /// The document in a file.
    pub fn text(&self, path: &Path) -> Result<String, PolicyError> {
        let not_read = || Err(Arc::new(io::ErrorKind::NotFound.into()));
        let found = self.0.iter().find(|(other, _)| other == path);
        let read = found.map_or_else(not_read, |(_, read)| read.clone());
        let bytes = read.map_err(|why| PolicyError::Unreadable(path.to_owned(), why))?;
        String::from_utf8(bytes)
            .map_err(|error| PolicyError::NotUtf8(path.to_owned(), not_utf8(error.as_bytes())))
    }
}

fn plainly(error: &io::Error) -> String {
    match (error.kind(), error.get_ref()) {
        (_, Some(why)) => why.to_string(),
        (io::ErrorKind::NotFound, _) => "no such file".to_owned(),
        (io::ErrorKind::IsADirectory, _) => "it is a folder".to_owned(),
        _ => "it cannot be opened".to_owned(),
    }
}

impl Policies {
    /// The meanings of the policies of the file and of the command line.
    pub(crate) fn meanings(&self, file: &FileState) -> Meanings {
        let of_file = self.of_file.iter().filter_map(|(name, _)| self.by_name.get(name));
        let local = self.local.iter().filter(|_| file.local_policy.is_some());
        let all = of_file.chain(local).map(|active| &active.policy);
        all.map(|policy| (policy.name().to_owned(), policy.hash().to_owned())).collect()
    }
}

/// Compiles the policies of file and store, checked against the `known` servers and tools.
pub(crate) fn policies(
    file: &FileState,
    snapshot: &Snapshot,
    is_local: bool,
    known: &Known,
    before: &Before<'_>,
) -> Result<Policies, PolicyErrors> {
    let (mut made, mut errors) = (Policies::default(), Vec::new());
    for policy in &file.config.policies {
        let document = match &policy.source {
            PolicySource::File(path) => {
                file.policies.text(path).map(|text| (path.display().to_string(), text))
            }
            PolicySource::Inline(text) => Ok((format!("policy {}", policy.name), text.clone())),
        };
        let compiled = document.and_then(|(shown, text)| {
            made.of_file.push((policy.name.clone(), text.trim_start_matches('\n').to_owned()));
            Ok(made.compiled.compile(before, &policy.name, None, &shown, &text, known)?)
        });
        match compiled {
            Ok(compiled) => drop(made.by_name.insert(policy.name.clone(), compiled)),
            Err(error) => errors.push(error),
        }
    }
    if is_local {
        match local_policy(file, known, before, &mut made.compiled) {
            Ok(policy) => made.local = Some(policy),
            Err(error) => errors.push(error),
        }
    }
    if !errors.is_empty() {
        return Err(PolicyErrors(errors));
    }
    add_stored(&mut made, snapshot, before, known);
    if !made.by_name.contains_key(BUILT_IN) {
        let built_in = made.compiled.compile(before, BUILT_IN, None, BUILT_IN, RECOMMENDED, known);
        let built_in = built_in.map_err(|rejected| PolicyErrors(vec![rejected.into()]))?;
        made.by_name.insert(BUILT_IN.to_owned(), built_in);
    }
    Ok(made)
}

/// Adds the policies of the store, except those that the file shadows.
fn add_stored(made: &mut Policies, snapshot: &Snapshot, before: &Before<'_>, known: &Known) {
    for stored in &snapshot.policies {
        if made.by_name.contains_key(&*stored.name) {
            tracing::warn!(
                policy = %stored.name,
                "stored policy shadowed by the policy of the same name in toolgate.yaml"
            );
            continue;
        }
        let shown = format!("policy {} (version {})", stored.name, stored.version);
        let (version, text) = (Some(stored.version), &stored.document);
        match made.compiled.compile(before, &stored.name, version, &shown, text, known) {
            Ok(compiled) => drop(made.by_name.insert(stored.name.to_string(), compiled)),
            Err(rejected) => tracing::error!(
                policy = %stored.name,
                "stored policy cannot be used; its grants are denied everything:\n{rejected}"
            ),
        }
    }
}

/// The policy of calls without a token: that of the command line, else the built-in one in shadow.
fn local_policy(
    file: &FileState,
    known: &Known,
    before: &Before<'_>,
    compiled: &mut Compiled,
) -> Result<Arc<ActivePolicy>, PolicyError> {
    let Some(path) = &file.local_policy else {
        let text = format!("mode: shadow\n{RECOMMENDED}");
        return Ok(compiled.compile(before, BUILT_IN, None, BUILT_IN, &text, known)?);
    };
    let name = path.file_stem().map_or(LOCAL.into(), |stem| stem.to_string_lossy());
    let text = file.policies.text(path)?;
    Ok(compiled.compile(before, &name, None, &path.display().to_string(), &text, known)?)
}

// === impl Compiled ===

impl Compiled {
    fn compile(
        &mut self,
        before: &Before<'_>,
        name: &str,
        version: Option<u64>,
        shown: &str,
        text: &str,
        known: &Known,
    ) -> Result<Arc<ActivePolicy>, Rejected> {
        let (name, servers) = (name.to_owned(), known.servers.clone());
        let source = Source { name, version, text: text.to_owned(), servers };
        let compiled = if let Some(same) = before.compiled.0.get(&source) {
            Arc::clone(same)
        } else {
            let passed = before.checked.find(&source.name, text, &known.servers);
            let policy = passed.map_or_else(|| before.check(&source, shown, known), Ok)?;
            Arc::new(ActivePolicy::of_version(policy, version))
        };
        self.0.insert(source, Arc::clone(&compiled));
        Ok(compiled)
    }

    /// Adds policies that were compiled elsewhere.
    pub(crate) fn adopt(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

impl Before<'_> {
    fn check(&self, source: &Source, shown: &str, known: &Known) -> Result<Arc<Policy>, Rejected> {
        let Source { name, text, .. } = source;
        let checked = if self.must_test(source) {
            policy_check::check(name, text, known)
        } else {
            policy_check::load(name, text, known)
        };
        for warning in checked.warnings(shown, text) {
            tracing::warn!(policy = name, "{warning}");
        }
        checked.accept(shown, text).map(Arc::new)
    }

    /// Whether this text was not tested yet. One of the store was, by the process that stored it.
    fn must_test(&self, source: &Source) -> bool {
        let same = |it: &Source| it.name == source.name && it.text == source.text;
        let tested = self.compiled.0.keys().any(same) || source.version.is_some();
        self.is_start || !tested
    }
}

#[cfg(test)]
mod tests;
