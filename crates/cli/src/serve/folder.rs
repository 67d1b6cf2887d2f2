//! A grant of a data folder on which no gateway runs, as one would find it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolgate_admin::Tried;
use toolgate_config::{Config, ServerConfig, Severity};
use toolgate_gateway::{InForce, Records};
use toolgate_policy::Class;
use toolgate_session::{self as session, Reach};
use toolgate_store::{Document, Snapshot};

use super::access::{Compiled, FileSide, Policies, PolicyFiles, Tests, policies};
use super::source::Source;
use super::{sessions, wire};

/// A grant and its policy.
#[derive(Debug)]
pub(crate) struct KnownGrant {
    pub(crate) label: String,
    pub(crate) identity: Option<String>,
    pub(crate) groups: Vec<String>,
    /// The sessions it may reach.
    pub(crate) sessions: Arc<Reach>,
    pub(crate) revoked: bool,
    /// What decides its calls, and the document it was made of.
    pub(crate) policy: Option<(Arc<InForce>, String)>,
}

/// The configuration file that `serve` with the same flag would read.
pub(crate) fn config_file(config: Option<&Path>) -> Option<PathBuf> {
    Source::find(config).file().map(Path::to_owned)
}

/// How many mistakes a configuration file has, but for secrets that are not here.
pub(crate) fn errors_of(file: &Path) -> usize {
    let source = Source::find(Some(file));
    source.problems().iter().filter(|problem| problem.severity == Severity::Error).count()
}

/// What the file says; it may be read where the secrets of `serve` are not.
pub(crate) fn file_side(config: Option<&Path>) -> anyhow::Result<FileSide> {
    let config = Source::find(config).load_without_secrets()?;
    let policies = PolicyFiles::read(&config, None);
    Ok(FileSide { config, policies, local_policy: None })
}

/// The grant of this id or label; a mistake in a policy of the file in one text.
pub(crate) fn grant(
    file: &FileSide,
    snapshot: &Snapshot,
    servers: &[String],
    named: &str,
) -> Result<Option<KnownGrant>, String> {
    let tests = Tests { tried: &Tried::default(), at_start: true };
    let compiled = Compiled::default();
    let policies = policies(file, snapshot, false, servers, (&compiled, &tests))?;
    let policy = |name: Option<&str>| in_force(&policies, snapshot, name?);
    if let Some(grant) = file.config.grants.iter().find(|grant| grant.label == named) {
        let mut kept = snapshot.grants.iter();
        return Ok(Some(KnownGrant {
            label: grant.label.clone(),
            identity: grant.identity.clone(),
            groups: grant.groups.clone(),
            sessions: sessions::reach(&grant.sessions),
            // A stored revocation wins over the file.
            revoked: kept.any(|kept| *kept.label == *named && kept.revoked.is_some()),
            policy: policy(grant.policy.as_deref()),
        }));
    }
    let found = snapshot.grants.iter().find(|grant| *grant.id == *named || *grant.label == *named);
    Ok(found.map(|grant| KnownGrant {
        label: grant.label.to_string(),
        identity: grant.identity.as_deref().map(str::to_owned),
        groups: grant.groups.clone(),
        sessions: grant.sessions.as_deref().map(sessions::kept_reach).unwrap_or_default(),
        revoked: grant.revoked.is_some(),
        policy: policy(grant.policy.as_deref()),
    }))
}

/// The session tool that a grant knows by this name, from the showcase of the folder: as a gateway
/// would find it while no session is there. With `by_original` also by what its clients call it.
pub(crate) fn session_tool(
    (config, servers): (&Config, &[String]),
    showcase: &[Document],
    reach: &Reach,
    (tool, by_original): (&str, bool),
) -> Option<(session::KnownSessionTool, Class)> {
    let entries = Records::entries(showcase);
    let mut settings = sessions::settings(config);
    settings.servers = servers.to_vec();
    let machine = session::SessionMachine::new(settings, entries, session::Millis(0));
    let published = || {
        let published = machine.published(reach).tools.into_iter();
        let mut named = published.filter(|it| by_original && *it.original == *tool);
        machine.known(&named.next()?.name, reach)
    };
    let known = machine.known(tool, reach).or_else(published)?;
    let class = sessions::classes(config).of(&known);
    Some((known, class))
}

/// The operator's word about the class of a tool.
pub(crate) fn said_class(server: &ServerConfig, tool: &str) -> Option<Class> {
    let said = server.tools.iter().find(|one| one.name == tool)?;
    said.class.map(wire::class)
}

fn in_force(
    policies: &Policies,
    snapshot: &Snapshot,
    name: &str,
) -> Option<(Arc<InForce>, String)> {
    let in_force = policies.by_name.get(name)?;
    let of_file = policies.of_file.iter().find(|(other, _)| other == name);
    let text = of_file.map(|(_, text)| text.clone()).or_else(|| {
        let kept = snapshot.policies.iter().find(|kept| *kept.name == *name);
        kept.map(|kept| kept.document.to_string())
    });
    Some((Arc::clone(in_force), text.unwrap_or_default()))
}
