//! Access of `toolgate run`: the built-in grant `stdio`, beside whatever a gateway on the same data
//! folder does.
//!
//! Its policy is that of the command line, in the document's own mode. Without one it is the built-in
//! policy in shadow mode, as in local mode and as long as local mode would be on; after that its calls
//! are denied.
//!
//! Invariant: freezes, the end of local mode, approved definitions and the answers of people take
//! effect as in a gateway, because all of them come from the store. People of `toolgate.yaml` answer
//! too, if `run` reads the same file as the gateway.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use toolgate_audit::Hash;
use toolgate_config::{Config, Listen, not_utf8};
use toolgate_gateway::{APPROVED_TOOLS, Access, ActivePolicy, Gateway, Grant, RefreshError};
use toolgate_policy::{Known, RECOMMENDED};
use toolgate_store::Store;

use crate::access::{exceptions, frozen};
use crate::error::NotActive;
use crate::local_mode::{self, LocalMode};
use crate::people::people;
use crate::policies::{BUILT_IN, PolicyError, PolicyErrors};
use crate::policy_check;

/// The label of calls over stdio, and their `via`.
pub const STDIO: &str = "stdio";

/// Takes the place of the admin's token, which `run` does not read: no token is compared here.
const ADMIN: &str = "admin";

/// Nothing listens.
const NO_LISTENER: Listen = Listen { mcp: None, sessions: None, admin: None, metrics: None };

/// Keeps the access of `toolgate run` current.
pub struct StdioBridge {
    store: Arc<dyn Store>,
    gateway: Arc<Gateway>,
    config: Config,
    /// The policy of the command line.
    given: RwLock<Option<Arc<ActivePolicy>>>,
    /// The built-in policy, in shadow mode.
    built_in: Arc<ActivePolicy>,
}

impl StdioBridge {
    /// A bridge to the server of this gateway. From now on the gateway asks it when the store has
    /// changed.
    pub fn new(
        store: Arc<dyn Store>,
        gateway: Arc<Gateway>,
        config: Config,
    ) -> Result<Arc<Self>, PolicyErrors> {
        let text = format!("mode: shadow\n{RECOMMENDED}");
        let built_in = compile(&config, BUILT_IN, BUILT_IN, &text)?;
        let given = RwLock::default();
        let bridge = Arc::new(Self { store, gateway, config, given, built_in });
        let weak = Arc::downgrade(&bridge);
        bridge.gateway.admission().set_refresh(Box::new(move || {
            let bridge = weak.upgrade();
            Box::pin(async move {
                match bridge {
                    Some(bridge) => {
                        bridge.refresh().await.map_err(|why| RefreshError::Failed(Box::new(why)))
                    }
                    None => Err(RefreshError::Failed("toolgate is stopping".into())),
                }
            })
        }));
        Ok(bridge)
    }

    /// Uses this document from the next refresh on; one that cannot be used changes nothing.
    pub fn set_policy(&self, file: &Path, bytes: Vec<u8>) -> Result<(), PolicyErrors> {
        let text = String::from_utf8(bytes).map_err(|error| {
            let why = not_utf8(error.as_bytes());
            PolicyErrors(vec![PolicyError::NotUtf8(file.to_owned(), why)])
        })?;
        let name = file.file_stem().map_or(STDIO.into(), |stem| stem.to_string_lossy());
        let policy = compile(&self.config, &name, &file.display().to_string(), &text)?;
        *self.given.write().unwrap_or_else(PoisonError::into_inner) = Some(policy);
        Ok(())
    }

    /// Makes the content of the store active, if it has changed.
    pub async fn refresh(&self) -> Result<(), NotActive> {
        if self.gateway.admission().generation() == Some(self.store.generation()) {
            return Ok(());
        }
        self.apply().await.map(drop)
    }

    /// Makes store and policy active; whether calls have a policy.
    pub async fn apply(&self) -> Result<bool, NotActive> {
        let snapshot = self.store.snapshot().await?;
        let kept = self.store.documents(local_mode::SPACE).await?;
        let kept = kept.first().map(|kept| LocalMode::parse(&kept.json));
        let has_grants = !snapshot.grants.is_empty();
        let local = local_mode::decide(&self.config, &NO_LISTENER, kept.as_ref(), has_grants);
        let given = self.given.read().unwrap_or_else(PoisonError::into_inner).clone();
        let policy = given.or_else(|| local.is_on.then(|| Arc::clone(&self.built_in)));
        let is_decided = policy.is_some();
        let grant =
            Grant { label: STDIO.into(), via: Some(STDIO.into()), policy, ..Grant::default() };
        let mut access = Access::new(Some(Arc::new(grant)), []);
        access.generation = Some(snapshot.generation);
        access.frozen = frozen(&snapshot);
        let people = people(Hash::of(ADMIN.as_bytes()), &self.config, &snapshot);
        access.approvers = people.approvers(self.config.approvals.four_eyes);
        access.exceptions = exceptions(&snapshot, &access.approvers);
        let approved = self.store.documents(APPROVED_TOOLS).await?;
        self.gateway.set_approved_tools(&approved);
        self.gateway.admission().set_access(access);
        self.gateway.access_changed();
        Ok(is_decided)
    }
}

fn compile(
    config: &Config,
    name: &str,
    shown: &str,
    text: &str,
) -> Result<Arc<ActivePolicy>, PolicyErrors> {
    let servers = config.servers.iter().map(|server| server.name.clone()).collect();
    let known = Known { servers, ..Known::default() };
    let checked = policy_check::check(name, text, &known);
    for warning in checked.warnings(shown, text) {
        tracing::warn!(policy = name, "{warning}");
    }
    let policy = checked.accept(shown, text).map_err(|why| PolicyErrors(vec![why.into()]))?;
    Ok(Arc::new(ActivePolicy::new(policy)))
}
