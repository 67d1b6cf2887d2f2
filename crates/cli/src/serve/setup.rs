//! The setup: the file and the store together, put in force as one.
//!
//! Whenever one of them changes, everything that follows from them is made anew (who may call,
//! which servers there are, what people see) and swapped.
//!
//! Invariant: what cannot be used never becomes active; what stood before stays.
//! Invariant: one at a time, so that an older state never replaces a newer one.
//!
//! Start at [`Setup::refresh`] (the store has changed) and [`Setup::replace_file`].

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Mutex;
use tokio::time::timeout;
use toolgate_admin::local::{self, Word};
use toolgate_admin::{Admin, Place, SERVERS, Tried};
use toolgate_audit::{Draft, Hash, RowKind};
use toolgate_config::{Config, Listen, ServerConfig};
use toolgate_gateway::{Gateway, Server};
use toolgate_store::{Document, Snapshot, Store};

use super::access::{Compiled, FileSide, Tests, access, may_be_local, policies};
use super::edits::{self, Edit, Meanings};
use super::entries::KeptServers;
use super::view::{people, view};
use super::wire::{self, Wiring};

/// How long the store may take to write an edit down.
const PATIENCE: Duration = Duration::from_secs(10);

/// Puts the file and the store in force.
pub(crate) struct Setup {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) admin: Arc<Admin>,
    pub(crate) wiring: Wiring,
    pub(crate) entries: Arc<KeptServers>,
    /// Where toolgate listens; another file changes nothing about it until a restart.
    pub(crate) bound: Listen,
    /// The token of the person `admin`.
    pub(crate) admin_token: Hash,
    /// Policies that passed their tests before they were put.
    pub(crate) tried: Arc<Tried>,
    pub(crate) state: Mutex<State>,
}

/// What is in force, and what it was made of.
#[derive(Debug, Default)]
pub(crate) struct State {
    file: Option<FileSide>,
    compiled: Compiled,
    /// What the policies of the file mean.
    meanings: Meanings,
    servers: Vec<ServerConfig>,
    summary: Summary,
}

/// What the start text has to say.
#[derive(Debug, Default, Clone)]
pub(crate) struct Summary {
    /// Whether calls without a token are taken.
    pub(crate) local: bool,
    /// How many grants there are that were not revoked.
    pub(crate) grants: usize,
    /// Whether some of them were made at run time.
    kept_grants: bool,
    /// Names of servers, in their order.
    pub(crate) servers: Vec<String>,
}

/// What the store says.
struct StoreSide {
    snapshot: Snapshot,
    servers: Vec<Document>,
    /// What is kept about local mode.
    local: Option<Word>,
}

impl Setup {
    /// Puts in force what the store holds now, if that is something else.
    pub(crate) async fn refresh(&self) -> Result<(), String> {
        let mut state = self.state.lock().await;
        if self.gateway.admission().generation() == Some(self.store.generation()) {
            return Ok(());
        }
        let Some(file) = state.file.clone() else { return Ok(()) };
        let made = self.put(&mut state, file).await;
        made.inspect_err(|why| tracing::error!("what was changed cannot be put in force:\n{why}"))
    }

    /// Puts another file in force; if it cannot be used, nothing changes.
    pub(crate) async fn replace_file(&self, file: FileSide) -> Result<(), String> {
        let compiled = self.compile_aside(&file).await?;
        let mut state = self.state.lock().await;
        state.compiled.adopt(compiled);
        self.put(&mut state, file).await
    }

    /// The policies of a file, read and tested while changes go on.
    async fn compile_aside(&self, file: &FileSide) -> Result<Compiled, String> {
        let added = self.store.documents(SERVERS).await.map_err(|error| error.to_string())?;
        let servers = servers(&file.config, self.entries.read(&added));
        let names: Vec<String> = servers.into_iter().map(|server| server.name).collect();
        let (file, tried) = (file.clone(), Arc::clone(&self.tried));
        let (before, local, at_start) = {
            let state = self.state.lock().await;
            (state.compiled.clone(), state.summary.local, state.file.is_none())
        };
        let compile = move || {
            let tests = Tests { tried: &tried, at_start };
            policies(&file, &Snapshot::default(), local, &names, (&before, &tests))
        };
        let compiled = tokio::task::spawn_blocking(compile).await;
        Ok(compiled.map_err(|_| "the policies could not be read".to_owned())??.compiled)
    }

    /// Whether there are grants that were made at run time.
    pub(crate) async fn has_kept_grants(&self) -> bool {
        self.state.lock().await.summary.kept_grants
    }

    /// What the start text has to say.
    pub(crate) async fn summary(&self) -> Summary {
        self.state.lock().await.summary.clone()
    }

    async fn put(&self, state: &mut State, file: FileSide) -> Result<(), String> {
        let kept = self.read().await?;
        let snapshot = &kept.snapshot;
        let labels = file.config.grants.iter().map(|grant| grant.label.as_str());
        let ends_local = Word::is_ended_by(kept.local.as_ref(), labels);
        let servers = servers(&file.config, self.entries.read(&kept.servers));
        let names: Vec<String> = servers.iter().map(|server| server.name.clone()).collect();
        let local = may_be_local(&file.config, &self.bound)
            && !ends_local
            && match &kept.local {
                Some(word) => *word != Word::Ended,
                None => snapshot.grants.is_empty(),
            };
        let tests = Tests { tried: &self.tried, at_start: state.file.is_none() };
        let policies = policies(&file, snapshot, local, &names, (&state.compiled, &tests))?;
        let access = access(&file, snapshot, &policies)?;
        let wired = self.wire(state, &file.config, &servers)?;
        let people = people(self.admin_token, &file.config, snapshot);
        let view = view(&file, snapshot, &servers, &policies, local);
        let valid = || view.grants.iter().filter(|grant| grant.revoked.is_none());
        let grants = valid().count();
        let kept_grants = valid().any(|grant| grant.source == Place::Store);

        let meanings = policies.meanings(&file);
        self.write_down(state, &file, &meanings).await?;
        if ends_local {
            self.end_local_mode().await;
        }
        self.gateway.admission().set_access(access);
        if let Some(wired) = wired {
            self.gateway.apply(wired, wire::agent_sessions(&file.config));
        }
        self.gateway.access_changed();
        self.admin.set(people, view);
        *state = State {
            file: Some(file),
            compiled: policies.compiled,
            meanings,
            servers,
            summary: Summary { local, grants, kept_grants, servers: names },
        };
        Ok(())
    }

    /// An edit of the file is in the audit before it takes effect, and so is one that was made
    /// while nobody served.
    async fn write_down(
        &self,
        state: &State,
        file: &FileSide,
        meanings: &Meanings,
    ) -> Result<(), String> {
        let now = Timestamp::now();
        let edits = if let Some(before) = &state.file {
            let old = (&before.config, &state.meanings);
            edits::rows(old, (&file.config, meanings), now)
        } else {
            let kept =
                self.store.documents(edits::SPACE).await.map_err(|error| error.to_string())?;
            edits::since_last_start(&edits::written(&kept), meanings, now)
        };
        for edit in edits {
            let written = timeout(PATIENCE, self.write_edit(edit)).await;
            written
                .unwrap_or_else(|_| Err("the disk does not answer".to_owned()))
                .map_err(|why| format!("the change cannot be written down: {why}"))?;
        }
        Ok(())
    }

    async fn write_edit(&self, (change, row): Edit) -> Result<(), String> {
        if let Some(change) = change {
            let changed = self.store.change(change, row).await;
            return changed.map(drop).map_err(|error| error.to_string());
        }
        self.store.record(row).await.map(drop).map_err(|error| error.to_string())
    }

    async fn read(&self) -> Result<StoreSide, String> {
        let snapshot = self.store.snapshot().await.map_err(|error| error.to_string())?;
        let servers = self.store.documents(SERVERS).await.map_err(|error| error.to_string())?;
        let local = self.store.documents(local::SPACE).await.map_err(|error| error.to_string())?;
        let local = local.first().map(|kept| Word::read(&kept.json));
        Ok(StoreSide { snapshot, servers, local })
    }

    /// The first grant ends local mode for good, also one of the file.
    async fn end_local_mode(&self) {
        let mut row = Draft::new(RowKind::Admin, Timestamp::now());
        row.message = Some("local mode has ended: toolgate.yaml has a new grant".into());
        if let Err(error) = self.store.change(Word::Ended.keep(), row).await {
            tracing::error!(%error, "that local mode has ended is not kept");
        }
    }

    /// Servers to run on; none if they are the same as before.
    fn wire(
        &self,
        state: &State,
        config: &Config,
        servers: &[ServerConfig],
    ) -> Result<Option<Vec<Arc<Server>>>, String> {
        let before = state.file.as_ref().map(|file| &file.config);
        let same_limits = before.is_some_and(|before| {
            before.limits.result == config.limits.result
                && before.agent_sessions == config.agent_sessions
        });
        if same_limits && state.servers == servers {
            return Ok(None);
        }
        let same_result = before.is_some_and(|old| old.limits.result == config.limits.result);
        let mut wired = Vec::with_capacity(servers.len());
        for server in servers {
            let same = same_result && state.servers.contains(server);
            let kept = if same { self.gateway.server(&server.name) } else { None };
            wired.push(match kept {
                Some(kept) => kept,
                None => self
                    .wiring
                    .server(server, &config.limits)
                    .map_err(|error| format!("{error:#}"))?,
            });
        }
        Ok(Some(wired))
    }
}

/// Those of the file, then those that were added; of two of one name that of the file.
fn servers(config: &Config, added: Vec<ServerConfig>) -> Vec<ServerConfig> {
    let mut servers = config.servers.clone();
    for server in added {
        if servers.iter().any(|other| other.name == server.name) {
            tracing::warn!(
                server = server.name,
                "toolgate.yaml has a server of this name, which counts"
            );
        } else {
            servers.push(server);
        }
    }
    servers
}
