//! Watches the folders of the configuration's files. Folders, since editors and orchestrators
//! replace files instead of writing to them.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _, recommended_watcher};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// Editors write a file in several steps; the file is read after the last one.
const SETTLE: Duration = Duration::from_millis(100);

/// The watched folders and their events.
pub(crate) struct Watch {
    watcher: Option<RecommendedWatcher>,
    folders: BTreeSet<PathBuf>,
    /// Folders that cannot be watched; already logged.
    unwatched: HashSet<PathBuf>,
    events: Events,
}

/// Reports a change once it has settled.
struct Events {
    received: mpsc::Receiver<()>,
    /// The time of the first event that is not reported yet.
    since: Option<Instant>,
}

impl Watch {
    /// Watches nothing yet.
    pub(crate) fn new() -> Self {
        let (send, received) = mpsc::channel(1);
        let watcher = recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Reading a file is an event too.
            let is_change = event.is_ok_and(|event| !event.kind.is_access());
            if is_change && send.try_send(()).is_err() {
                tracing::trace!("a change is already pending");
            }
        });
        if let Err(error) = &watcher {
            tracing::warn!(%error, "cannot watch the configuration; send SIGHUP after a change");
        }
        Self {
            watcher: watcher.ok(),
            folders: BTreeSet::new(),
            unwatched: HashSet::new(),
            events: Events { received, since: None },
        }
    }

    /// Watches these folders and no others. A folder that was replaced is watched anew.
    pub(crate) fn set(&mut self, folders: BTreeSet<PathBuf>) {
        let Some(watcher) = &mut self.watcher else { return };
        for folder in self.folders.difference(&folders) {
            // A folder that is gone is not watched any more.
            drop(watcher.unwatch(folder));
        }
        for folder in &folders {
            if let Err(error) = watcher.watch(folder, RecursiveMode::NonRecursive)
                && self.unwatched.insert(folder.clone())
            {
                let folder = folder.display();
                tracing::warn!(%error, %folder, "cannot watch a folder of the configuration; send SIGHUP after a change");
            }
        }
        self.folders = folders;
    }

    /// Reports a change soon, as if an event had happened.
    pub(crate) fn look_again(&mut self) {
        self.events.since.get_or_insert_with(Instant::now);
    }

    /// Waits until a change has settled. Safe to cancel.
    pub(crate) async fn changed(&mut self) {
        self.events.next().await;
    }
}

impl Events {
    /// Safe to cancel: an event that was received and not reported yet is reported next time.
    async fn next(&mut self) {
        let since = match self.since {
            Some(since) => since,
            None if self.received.recv().await.is_some() => *self.since.insert(Instant::now()),
            None => std::future::pending().await,
        };
        sleep_until(since + SETTLE).await;
        self.since = None;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn an_event_is_not_lost_when_the_wait_is_cancelled() {
        let (send, received) = mpsc::channel(1);
        let mut events = Events { received, since: None };
        send.send(()).await.unwrap();
        assert!(timeout(SETTLE / 10, events.next()).await.is_err(), "not settled yet");
        events.next().await;
        assert!(timeout(SETTLE * 2, events.next()).await.is_err(), "reported once");
    }
}
