//! Reload: a changed configuration becomes active, an invalid one never does.
//!
//! Every file that the configuration is read from is watched: itself, policies, secrets, the
//! certificate. All are read again when one of them changes, and on SIGHUP. Servers, limits, hosts
//! and origins change at once; listeners and the data folder need a restart, which is logged.
//!
//! Invariant: a configuration that was rejected is tried again as soon as any of its files changes,
//! in content, owner or mode.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use toolgate_audit::ArgumentHashKey;
use toolgate_config::{Config, Problem, render};
use toolgate_control::session_settings::classes;
use toolgate_control::unsafe_start::{self, Unsafe};
use toolgate_control::{
    Control, FileState, Inputs, LastReload, NotActive, PolicyFiles, Recording, trusted,
};

use super::listeners::Served;
use super::watch::Watch;
use super::{certificate, store, wire};
use crate::config_source::{Here, Source};

/// Watches the configuration and applies it.
pub(crate) struct Reload {
    source: Source,
    active: Active,
    control: Arc<Control>,
    served: Served,
    watch: Watch,
}

/// The active configuration.
pub(crate) struct Active {
    /// The configuration and its policies.
    pub(crate) file: FileState,
    /// The files of the last attempt, successful or not.
    pub(crate) inputs: Inputs,
    /// The key of hashed arguments.
    pub(crate) secret: ArgumentHashKey,
}

/// Why a configuration did not become active.
#[derive(Debug, thiserror::Error)]
enum NotApplied {
    #[error("{}", render(.0))]
    Invalid(Vec<Problem>),
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Unsafe(Vec<Unsafe>),
    #[error("{0:#}")]
    Certificate(anyhow::Error),
    #[error(transparent)]
    NotActive(#[from] NotActive),
}

impl Reload {
    /// Watches from now on. A change since `active` was read is noticed.
    pub(crate) async fn new(
        source: Source,
        active: Active,
        control: Arc<Control>,
        served: Served,
    ) -> Self {
        let mut reload = Self { source, active, control, served, watch: Watch::new() };
        reload.if_changed().await;
        reload
    }

    /// The configuration file, if there is one.
    pub(crate) fn config_file(&self) -> Option<&Path> {
        self.source.file()
    }

    /// Waits until a watched folder has changed. Safe to cancel.
    pub(crate) async fn changed(&mut self) {
        self.watch.changed().await;
    }

    /// Reads the configuration again if one of its files has changed.
    pub(crate) async fn if_changed(&mut self) {
        // A folder may be new, or another one by now. Watched first, so that no change is missed.
        self.watch.set(self.active.inputs.folders());
        if self.active.inputs.have_changed(trusted::read) {
            self.now().await;
        }
    }

    /// Reads the configuration and everything that it refers to again.
    pub(crate) async fn now(&mut self) {
        self.source.find_again();
        let file = self.source.file().map(Path::to_owned);
        let mut inputs = Inputs::default();
        self.source.record_absence(&mut inputs);
        let applied = match &file {
            Some(file) => self.try_apply(file, &mut inputs).await,
            None => self.try_apply_policies(&mut inputs).await,
        };
        self.active.inputs = inputs;
        self.watch.set(self.active.inputs.folders());
        if self.active.inputs.have_changed(trusted::read) {
            self.watch.look_again();
        }
        let error = applied.err().map(|why| why.to_string());
        self.control.gateway().metrics().reloaded(error.is_none());
        let reload = LastReload { time: Timestamp::now(), error: error.clone() };
        self.control.set_last_reload(reload);
        match error {
            None => tracing::info!("configuration reloaded"),
            Some(why) => {
                tracing::error!(
                    "configuration not reloaded; the previous one stays active:\n{why}"
                );
            }
        }
    }

    /// Without a configuration file, only the policy of the command line can change.
    async fn try_apply_policies(&mut self, inputs: &mut Inputs) -> Result<(), NotApplied> {
        let mut file = self.active.file.clone();
        file.policies = PolicyFiles::read(&file.config, file.local_policy.as_deref(), inputs);
        self.control.replace_file(file.clone()).await?;
        self.active.file = file;
        Ok(())
    }

    async fn try_apply(&mut self, file: &Path, inputs: &mut Inputs) -> Result<(), NotApplied> {
        let recording = Recording::new(&Here);
        let loaded = Config::load(file, &recording);
        *inputs = recording.into_inputs();
        let loaded = loaded.map_err(NotApplied::Invalid)?;
        for warning in &loaded.warnings {
            tracing::warn!("{warning}");
        }
        let config = loaded.config;
        let stored_grants = self.control.summary().await.has_stored_grants;
        // Where toolgate listens now, and where it would after a restart.
        for listen in [self.control.bound(), &config.listen] {
            let reasons = unsafe_start::reasons(&config, listen, stored_grants);
            if !reasons.is_empty() {
                return Err(NotApplied::Unsafe(reasons));
            }
        }
        let certificate = certificate::load(&config).map_err(NotApplied::Certificate)?;
        let local_policy = self.active.file.local_policy.clone();
        let policies = PolicyFiles::read(&config, local_policy.as_deref(), inputs);
        let new = FileState { config, policies, local_policy };
        self.control.replace_file(new.clone()).await?;
        let admission = self.control.gateway().admission();
        admission.set_recording(store::recording(&new.config.audit, &self.active.secret));
        self.control.gateway().set_session_classes(classes(&new.config));
        self.control.gateway().set_session_pin(wire::pin(new.config.sessions.pin));
        self.served.set_rules(&new.config);
        self.served.set_certificate(certificate);
        self.log_what_needs_a_restart(&new.config);
        self.active.file = new;
        Ok(())
    }

    fn log_what_needs_a_restart(&self, config: &Config) {
        let (old, new) = (&self.active.file.config, config);
        let checkpoints = |config: &Config| {
            let audit = &config.audit;
            let places = (audit.checkpoint_file.clone(), audit.checkpoint_syslog.clone());
            (audit.checkpoint_rows, audit.checkpoint_every, places)
        };
        let changed = [
            (old.listen != new.listen, "listen"),
            (old.tls.is_some() != new.tls.is_some(), "tls"),
            (old.behind_proxy != new.behind_proxy, "behind_proxy"),
            (old.data != new.data, "data"),
            (wire::connection_limits(old) != wire::connection_limits(new), "limits of connections"),
            (old.shutdown_grace != new.shutdown_grace, "shutdown_grace"),
            (old.audit.durability != new.audit.durability, "audit.durability"),
            (checkpoints(old) != checkpoints(new), "audit.checkpoints"),
        ];
        for (_, what) in changed.iter().filter(|(changed, _)| *changed) {
            tracing::warn!("`{what}` has changed; restart toolgate to apply it");
        }
    }
}
