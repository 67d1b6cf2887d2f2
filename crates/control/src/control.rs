//! Control: makes file and store active together, as one.
//!
//! Whenever one of them changes, everything that follows from them is built anew (access, servers,
//! people, the read model) and replaced.
//!
//! Invariant: what cannot be used never becomes active; the previous state stays.
//! Invariant: changes are applied one at a time, so that an older state never replaces a newer one.
//! Invariant: no policy is tested under the lock of changes if it can be avoided: documents are
//! checked before it is taken.
//!
//! Start at [`Control::change`] (a person), [`Control::refresh`] (the store has changed) and
//! [`Control::replace_file`] (a start or a reload).

use std::fmt;
use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::{Mutex, Semaphore};
use toolgate_audit::{Draft, Hash};
use toolgate_config::{ApprovalsConfig, Listen, ServerConfig};
use toolgate_gateway::{APPROVED_TOOLS, Gateway, RefreshError};
use toolgate_policy::{Known, Policy};
use toolgate_store::{Change, ChangeError, Document, Snapshot, StandingException, Store};

use crate::access::{access, exceptions, void_exceptions};
use crate::added_servers::{AddedServers, SERVERS, servers};
use crate::checked_policies::CheckedPolicies;
use crate::error::{NotAccepted, NotActive, NotChanged};
use crate::finding::Finding;
use crate::last_reload::LastReload;
use crate::local_mode::{self, LocalMode};
use crate::people::{People, people};
use crate::policies::{Before, Compiled, FileState, Meanings, policies};
use crate::policy_check;
use crate::read_model::read_model;
use crate::stdio_bridge::STDIO;
use crate::view::{Origin, View};

mod recording;
#[cfg(test)]
mod tests;
mod wiring;

pub use wiring::{NotUsable, Wiring, agent_sessions};

/// How many documents are checked at once.
const CHECKS: usize = 2;

/// What [`Control`] is made of.
pub struct Parts {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The gateway that is controlled.
    pub gateway: Arc<Gateway>,
    /// Creates servers.
    pub wiring: Box<dyn Wiring>,
    /// Parses added servers.
    pub added_servers: AddedServers,
    /// Where toolgate listens; a change of the file takes effect with a restart.
    pub bound: Listen,
    /// The token of the person `admin`.
    pub admin_token: Hash,
}

/// A policy that passed its check.
#[derive(Debug)]
pub struct AcceptedPolicy {
    /// The policy.
    pub policy: Arc<Policy>,
    /// The warnings of its document.
    pub warnings: Vec<Finding>,
}

/// Makes file and store active.
pub struct Control {
    parts: Parts,
    state: Mutex<State>,
    people: ArcSwap<People>,
    view: ArcSwap<View>,
    approvals: ArcSwap<ApprovalsConfig>,
    last_reload: ArcSwapOption<LastReload>,
    checked: Arc<CheckedPolicies>,
    checks: Arc<Semaphore>,
}

/// What is active, and what it was made of.
#[derive(Debug, Default)]
struct State {
    file: Option<FileState>,
    compiled: Compiled,
    meanings: Meanings,
    servers: Vec<ServerConfig>,
    summary: Summary,
}

/// The active state in short, for the start text.
#[derive(Debug, Default, Clone)]
pub struct Summary {
    /// Whether calls without a token are accepted.
    pub local: bool,
    /// How many grants are not revoked.
    pub grants: usize,
    /// Whether some of them were created at run time.
    pub has_stored_grants: bool,
    /// Names of servers, in their order.
    pub servers: Vec<String>,
}

/// What the store holds.
struct StoreState {
    snapshot: Snapshot,
    servers: Vec<Document>,
    local: Option<LocalMode>,
    approved_tools: Vec<Document>,
}

impl Control {
    /// A gateway that has no servers and accepts no call before [`Control::replace_file`]. From then
    /// on the gateway asks this control when the store has changed.
    pub fn new(parts: Parts) -> Arc<Self> {
        let control = Arc::new(Self {
            parts,
            state: Mutex::default(),
            people: ArcSwap::default(),
            view: ArcSwap::default(),
            approvals: ArcSwap::default(),
            last_reload: ArcSwapOption::empty(),
            checked: Arc::default(),
            checks: Arc::new(Semaphore::new(CHECKS)),
        });
        let weak = Arc::downgrade(&control);
        control.gateway().admission().set_refresh(Box::new(move || {
            let control = weak.upgrade();
            Box::pin(async move {
                match control {
                    Some(control) => {
                        control.refresh().await.map_err(|why| RefreshError::Failed(Box::new(why)))
                    }
                    None => Err(RefreshError::Failed("toolgate is stopping".into())),
                }
            })
        }));
        control
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.parts.store
    }

    /// The gateway.
    pub fn gateway(&self) -> &Arc<Gateway> {
        &self.parts.gateway
    }

    /// Where toolgate listens.
    pub fn bound(&self) -> &Listen {
        &self.parts.bound
    }

    /// Parses added servers.
    pub fn added_servers(&self) -> &AddedServers {
        &self.parts.added_servers
    }

    /// The people who may use the admin API now.
    pub fn people(&self) -> Arc<People> {
        self.people.load_full()
    }

    /// The read model of what is active now.
    pub fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// How people are notified about held calls.
    pub fn approvals(&self) -> Arc<ApprovalsConfig> {
        self.approvals.load_full()
    }

    /// The last reload; `None` if there was none since the start.
    pub fn last_reload(&self) -> Option<Arc<LastReload>> {
        self.last_reload.load_full()
    }

    /// Remembers how a reload ended.
    pub fn set_last_reload(&self, reload: LastReload) {
        self.last_reload.store(Some(Arc::new(reload)));
    }

    /// The active state in short.
    pub async fn summary(&self) -> Summary {
        self.state.lock().await.summary.clone()
    }

    /// Checks a document on a thread of its own, against the tools that are known now.
    /// [`Control::change`] does not check it again.
    pub async fn check_policy(
        &self,
        name: &str,
        text: &str,
    ) -> Result<AcceptedPolicy, NotAccepted> {
        let turn = Arc::clone(&self.checks).acquire_owned().await;
        let turn = turn.map_err(|_| NotAccepted::Aborted)?;
        let servers: Vec<String> =
            self.view.load().servers.iter().map(|server| server.name.clone()).collect();
        let known = self.gateway().known_for_policies(None);
        let known = Known { servers: servers.clone(), ..known };
        let (of, document) = (name.to_owned(), text.to_owned());
        let check = move || {
            let _turn = turn;
            let checked = policy_check::check(&of, &document, &known);
            let findings = checked.findings(&of, &document);
            checked.accept(&of, &document).map(|policy| (policy, findings))
        };
        let checked = tokio::task::spawn_blocking(check).await;
        let (policy, warnings) = checked.map_err(|_| NotAccepted::Aborted)??;
        let policy = Arc::new(policy);
        self.checked.remember(name, text, &servers, &policy);
        Ok(AcceptedPolicy { policy, warnings })
    }

    /// Makes a change together with its row of the audit, and makes it active.
    pub async fn change(&self, change: Change, row: Draft) -> Result<(), NotChanged> {
        self.parts.store.change(change, row).await?;
        self.refresh().await.map_err(NotChanged::NotActive)
    }

    /// Makes the content of the store active, if it has changed.
    pub async fn refresh(&self) -> Result<(), NotActive> {
        let mut state = self.state.lock().await;
        if self.gateway().admission().generation() == Some(self.parts.store.generation()) {
            return Ok(());
        }
        let Some(file) = state.file.clone() else { return Ok(()) };
        let applied = self.apply(&mut state, file).await;
        applied.inspect_err(|why| tracing::error!("a change cannot become active:\n{why}"))
    }

    /// Makes another file active; if it cannot be used, nothing changes.
    pub async fn replace_file(&self, file: FileState) -> Result<(), NotActive> {
        let compiled = self.compile_aside(&file).await?;
        let mut state = self.state.lock().await;
        state.compiled.adopt(compiled);
        self.apply(&mut state, file).await
    }

    /// Compiles and tests the policies of a file without the lock of changes.
    async fn compile_aside(&self, file: &FileState) -> Result<Compiled, NotActive> {
        let added = self.parts.store.documents(SERVERS).await?;
        let servers = servers(&file.config, self.parts.added_servers.parse_all(&added));
        let names: Vec<String> = servers.into_iter().map(|server| server.name).collect();
        let known = Known { servers: names, ..self.gateway().known_for_policies(None) };
        let (file, checked) = (file.clone(), Arc::clone(&self.checked));
        let (compiled, local, is_start) = {
            let state = self.state.lock().await;
            (state.compiled.clone(), state.summary.local, state.file.is_none())
        };
        let compile = move || {
            let before = Before { compiled: &compiled, checked: &checked, is_start };
            policies(&file, &Snapshot::default(), local, &known, &before)
        };
        let compiled = tokio::task::spawn_blocking(compile).await;
        Ok(compiled.map_err(|_| NotActive::CheckAborted)??.compiled)
    }

    async fn apply(&self, state: &mut State, file: FileState) -> Result<(), NotActive> {
        let stored = self.read_store().await?;
        let (config, snapshot) = (&file.config, &stored.snapshot);
        let servers = servers(config, self.parts.added_servers.parse_all(&stored.servers));
        let names: Vec<String> = servers.iter().map(|server| server.name.clone()).collect();
        let has_stored_grants = !snapshot.grants.is_empty();
        let local =
            local_mode::decide(config, &self.parts.bound, stored.local.as_ref(), has_stored_grants);
        let is_start = state.file.is_none();
        let before = Before { compiled: &state.compiled, checked: &self.checked, is_start };
        let known = Known { servers: names.clone(), ..self.gateway().known_for_policies(None) };
        let policies = policies(&file, snapshot, local.is_on, &known, &before)?;
        let mut access = access(config, snapshot, &policies)?;
        let wired = self.wire(state, config, &servers)?;
        let people = people(self.parts.admin_token, config, snapshot);
        access.approvers = people.approvers(config.approvals.four_eyes);
        access.exceptions = exceptions(snapshot, &access.approvers);
        self.end_exceptions(void_exceptions(snapshot, &access, STDIO)).await;
        let view = read_model(&file, snapshot, &servers, &policies, local.is_on);
        let summary = Summary::of(&view, names);

        let meanings = policies.meanings(&file);
        self.record_edits(state, &file, &meanings).await?;
        if local.ends {
            self.end_local_mode().await;
        }
        self.gateway().set_approved_tools(&stored.approved_tools);
        // The read model first: a person who sees the effect of a change must read its cause.
        self.people.store(Arc::new(people));
        self.view.store(Arc::new(view));
        self.gateway().admission().set_access(access);
        if let Some(wired) = wired {
            self.gateway().apply(wired, agent_sessions(&file.config));
        }
        let holds = self.gateway().admission().holds();
        holds.set_public_url(file.config.public_url.clone());
        self.approvals.store(Arc::new(file.config.approvals.clone()));
        self.gateway().set_list_wait(file.config.list_wait);
        self.gateway().access_changed();
        let compiled = policies.compiled;
        *state = State { file: Some(file), compiled, meanings, servers, summary };
        Ok(())
    }

    /// Ends standing exceptions for good. Those that cannot be ended now lift nothing either, and are
    /// ended with the next change.
    async fn end_exceptions(&self, void: Vec<(&StandingException, &'static str)>) {
        for (one, why) in void {
            let message = format!("ended a standing exception: {why}");
            let row = one.row(self.gateway().admission().now(), &message);
            let change = Change::EndException(Arc::clone(&one.id));
            match self.parts.store.change(change, row).await {
                // Another process was faster.
                Ok(_) | Err(ChangeError::Unknown(_)) => {}
                Err(error) => {
                    tracing::error!(id = &*one.id, %error, "a standing exception is not ended yet");
                }
            }
        }
    }

    async fn read_store(&self) -> Result<StoreState, NotActive> {
        let snapshot = self.parts.store.snapshot().await?;
        let servers = self.parts.store.documents(SERVERS).await?;
        let local = self.parts.store.documents(local_mode::SPACE).await?;
        let local = local.first().map(|kept| LocalMode::parse(&kept.json));
        let approved_tools = self.parts.store.documents(APPROVED_TOOLS).await?;
        Ok(StoreState { snapshot, servers, local, approved_tools })
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").finish_non_exhaustive()
    }
}

impl Summary {
    fn of(view: &View, servers: Vec<String>) -> Self {
        let valid = || view.grants.iter().filter(|grant| grant.revoked.is_none());
        let has_stored_grants = valid().any(|grant| grant.source == Origin::Store);
        Self { local: view.local, grants: valid().count(), has_stored_grants, servers }
    }
}
