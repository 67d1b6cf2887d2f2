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
use toolgate_config::{Config, Process, render};
use toolgate_gateway::Gateway;

use super::listeners::Served;
use super::source::Source;
use super::unsafe_start;
use super::wire::{self, Wiring};

/// Editors write a file in several steps; the last one counts.
const SETTLE: Duration = Duration::from_millis(100);

/// Watches the configuration and applies it.
pub(crate) struct Reload {
    source: Source,
    active: Config,
    /// What was read last, valid or not.
    text: Option<Vec<u8>>,
    wiring: Wiring,
    gateway: Arc<Gateway>,
    served: Served,
    changes: Changes,
    /// Watches as long as it lives.
    _watcher: Option<RecommendedWatcher>,
}

/// Tells when something happened near the file and has settled.
struct Changes {
    told: mpsc::Receiver<()>,
    /// When the first thing happened that nobody has been told of.
    since: Option<Instant>,
}

impl Reload {
    /// Watches from now on. `text` is what the file held before `active` was read from it, so that
    /// a change since then is noticed.
    pub(crate) fn new(
        source: Source,
        text: Option<Vec<u8>>,
        active: Config,
        wiring: Wiring,
        gateway: Arc<Gateway>,
        served: Served,
    ) -> Self {
        let (tell, told) = mpsc::channel(1);
        let watcher = source.file().and_then(|file| watch(file, tell));
        let changes = Changes { told, since: None };
        let mut reload =
            Self { source, active, text, wiring, gateway, served, changes, _watcher: watcher };
        reload.if_changed();
        reload
    }

    /// Waits until something happened near the file. Safe to cancel.
    pub(crate) async fn changed(&mut self) {
        self.changes.next().await;
    }

    /// Reads the file again if its text is another.
    pub(crate) fn if_changed(&mut self) {
        let text = self.source.text();
        // A file that is gone for a moment is being replaced.
        if text.is_some() && text != self.text {
            self.now();
        }
    }

    /// Reads the file again; also what it refers to may have changed.
    pub(crate) fn now(&mut self) {
        let Some(file) = self.source.file().map(Path::to_owned) else {
            tracing::info!("there is no configuration file to read again");
            return;
        };
        self.text = std::fs::read(&file).ok();
        match self.try_apply(&file) {
            Ok(()) => tracing::info!(file = %file.display(), "the configuration was read again"),
            Err(why) => tracing::error!(
                file = %file.display(),
                "the new configuration is not used, the one before stays active:\n{why}"
            ),
        }
    }

    fn try_apply(&mut self, file: &Path) -> Result<(), String> {
        let loaded = Config::load(file, &Process).map_err(|problems| render(&problems))?;
        for warning in &loaded.warnings {
            tracing::warn!("{warning}");
        }
        let config = loaded.config;
        let reasons = unsafe_start::reasons(&config);
        if !reasons.is_empty() {
            return Err(reasons.join("\n"));
        }
        let mut servers = Vec::with_capacity(config.servers.len());
        for server in &config.servers {
            let same = self.active.servers.contains(server)
                && self.active.limits.result == config.limits.result;
            let kept = if same { self.gateway.server(&server.name) } else { None };
            servers.push(match kept {
                Some(kept) => kept,
                None => self
                    .wiring
                    .server(server, &config.limits)
                    .map_err(|error| format!("{error:#}"))?,
            });
        }
        self.gateway.apply(servers, wire::agent_sessions(&config));
        self.served.set_rules(&config);
        self.say_what_needs_a_restart(&config);
        self.active = config;
        Ok(())
    }

    fn say_what_needs_a_restart(&self, config: &Config) {
        let (old, new) = (&self.active, config);
        let changed = [
            (old.listen != new.listen, "listen"),
            (old.data != new.data, "data"),
            (wire::connection_limits(old) != wire::connection_limits(new), "limits of connections"),
            (old.shutdown_grace != new.shutdown_grace, "shutdown_grace"),
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

/// Watches the folder, since editors and orchestrators replace files instead of writing to them.
fn watch(file: &Path, tell: mpsc::Sender<()>) -> Option<RecommendedWatcher> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.map_or_else(|| PathBuf::from("."), Path::to_owned);
    let watcher = recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Reading the file is an event too, and ours.
        let is_change = event.is_ok_and(|event| !event.kind.is_access());
        // A full channel means that somebody is about to look anyway.
        if is_change && tell.try_send(()).is_err() {
            tracing::trace!("the configuration changes faster than it is read");
        }
    });
    let watching = watcher.and_then(|mut watcher| {
        watcher.watch(&folder, RecursiveMode::NonRecursive)?;
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
