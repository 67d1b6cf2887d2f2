//! Reload: a changed configuration becomes active, an invalid one never does.
//!
//! The file is read again when it changes and on SIGHUP. Servers, limits, hosts and origins change
//! at once; listeners and the data folder need a restart, and the log says so.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher, recommended_watcher};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use toolgate_audit::ArgumentHashKey;
use toolgate_config::{Config, render};

use super::access::{FileSide, PolicyFiles};
use super::listeners::Served;
use super::setup::Setup;
use super::source::Source;
use super::{certificate, sessions, store, unsafe_start, wire};

/// Editors write a file in several steps; the last one counts.
const SETTLE: Duration = Duration::from_millis(100);

/// Watches the configuration and applies it.
pub(crate) struct Reload {
    source: Source,
    active: Active,
    setup: Arc<Setup>,
    served: Served,
    changes: Changes,
    /// Watches as long as it lives.
    _watcher: Option<RecommendedWatcher>,
}

/// What is active, and what it was read from.
pub(crate) struct Active {
    /// The configuration, and what the policy files held when they were read last, valid or not.
    pub(crate) file: FileSide,
    /// What the configuration file held when it was read last, valid or not.
    pub(crate) text: Option<Vec<u8>>,
    /// What the files of the certificate held when they were read last, usable or not.
    pub(crate) certificate: certificate::Held,
    /// The key of hashed arguments.
    pub(crate) secret: ArgumentHashKey,
}

/// Tells when something happened near the file and has settled.
struct Changes {
    told: mpsc::Receiver<()>,
    /// When the first thing happened that nobody has been told of.
    since: Option<Instant>,
}

impl Reload {
    /// Watches from now on. A change since `active` was read is noticed.
    pub(crate) async fn new(
        source: Source,
        active: Active,
        setup: Arc<Setup>,
        served: Served,
    ) -> Self {
        let (tell, told) = mpsc::channel(1);
        let mut folders = active.file.policies.folders();
        folders.extend(certificate::folders(&active.file.config));
        let watcher = watch(source.file(), &folders, tell);
        let changes = Changes { told, since: None };
        let mut reload = Self { source, active, setup, served, changes, _watcher: watcher };
        reload.if_changed().await;
        reload
    }

    /// Waits until something happened near the file. Safe to cancel.
    pub(crate) async fn changed(&mut self) {
        self.changes.next().await;
    }

    /// Reads the file again if its text is another.
    pub(crate) async fn if_changed(&mut self) {
        let text = self.source.text();
        // A file that is gone for a moment is being replaced.
        let changed = text.is_some() && text != self.active.text;
        let certificate = certificate::Held::read(&self.active.file.config);
        let changed = changed || certificate != self.active.certificate;
        if changed || self.read_policies() != self.active.file.policies {
            self.now().await;
        }
    }

    /// Reads the file again; also what it refers to may have changed.
    pub(crate) async fn now(&mut self) {
        let file = self.source.file().map(Path::to_owned);
        self.active.certificate = certificate::Held::read(&self.active.file.config);
        let applied = if let Some(file) = &file {
            self.active.text = std::fs::read(file).ok();
            self.try_apply(file).await
        } else {
            self.active.file.policies = self.read_policies();
            self.setup.replace_file(self.active.file.clone()).await
        };
        let metrics = self.setup.gateway.metrics();
        match applied {
            Ok(()) => {
                metrics.reloaded(true);
                tracing::info!("the configuration was read again");
            }
            Err(why) => {
                metrics.reloaded(false);
                tracing::error!(
                    "the new configuration is not used, the one before stays active:\n{why}"
                );
            }
        }
    }

    fn read_policies(&self) -> PolicyFiles {
        let file = &self.active.file;
        PolicyFiles::read(&file.config, file.local_policy.as_deref())
    }

    async fn try_apply(&mut self, file: &Path) -> Result<(), String> {
        let loaded =
            Config::load(file, &certificate::Here).map_err(|problems| render(&problems))?;
        for warning in &loaded.warnings {
            tracing::warn!("{warning}");
        }
        let config = loaded.config;
        let kept_grants = self.setup.has_kept_grants().await;
        // Where toolgate listens now, and where it would after a restart.
        for listen in [&self.setup.bound, &config.listen] {
            let reasons = unsafe_start::reasons(&config, listen, kept_grants);
            if !reasons.is_empty() {
                return Err(reasons.join("\n"));
            }
        }
        let certificate = certificate::load(&config).map_err(|error| format!("{error:#}"))?;
        let local_policy = self.active.file.local_policy.clone();
        self.active.file.policies = PolicyFiles::read(&config, local_policy.as_deref());
        let policies = self.active.file.policies.clone();
        let new = FileSide { config, policies, local_policy };
        self.setup.replace_file(new.clone()).await?;
        let admission = self.setup.gateway.admission();
        admission.set_writing(store::writing(&new.config.audit, &self.active.secret));
        self.setup.gateway.set_session_classes(sessions::classes(&new.config));
        self.served.set_rules(&new.config);
        self.served.set_certificate(certificate);
        self.say_what_needs_a_restart(&new.config);
        self.active.file = new;
        Ok(())
    }

    fn say_what_needs_a_restart(&self, config: &Config) {
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
            tracing::warn!("`{what}` has changed; that needs a restart");
        }
    }
}

// === impl Changes ===

impl Changes {
    /// Safe to cancel: what was heard and not told yet is told next time.
    async fn next(&mut self) {
        let since = match self.since {
            Some(since) => since,
            None if self.told.recv().await.is_some() => *self.since.insert(Instant::now()),
            None => std::future::pending().await,
        };
        sleep_until(since + SETTLE).await;
        self.since = None;
    }
}

/// Watches folders, since editors and orchestrators replace files instead of writing to them.
fn watch(
    file: Option<&Path>,
    others: &[PathBuf],
    tell: mpsc::Sender<()>,
) -> Option<RecommendedWatcher> {
    let folder = |file: &Path| match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    let mut folders: Vec<PathBuf> = file.map(folder).into_iter().chain(others.to_vec()).collect();
    folders.sort();
    folders.dedup();
    if folders.is_empty() {
        return None;
    }
    let watcher = recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Reading the file is an event too, and ours.
        let is_change = event.is_ok_and(|event| !event.kind.is_access());
        // A full channel means that somebody is about to look anyway.
        if is_change && tell.try_send(()).is_err() {
            tracing::trace!("the configuration changes faster than it is read");
        }
    });
    let watching = watcher.and_then(|mut watcher| {
        for folder in &folders {
            watcher.watch(folder, RecursiveMode::NonRecursive)?;
        }
        Ok(watcher)
    });
    match watching {
        Ok(watcher) => Some(watcher),
        Err(error) => {
            tracing::warn!(%error, "the configuration is not watched; send SIGHUP after a change");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_change_is_not_lost_when_something_else_comes_between() {
        let (tell, told) = mpsc::channel(1);
        let mut changes = Changes { told, since: None };
        tell.send(()).await.unwrap();
        assert!(timeout(SETTLE / 10, changes.next()).await.is_err(), "not settled yet");
        changes.next().await;
        assert!(timeout(SETTLE * 2, changes.next()).await.is_err(), "told once");
    }
}
