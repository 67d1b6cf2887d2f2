//! Listing servers on behalf of toolgate itself, and keeping their lists across restarts.
//!
//! `serve` lists each server once when it starts and when a server is added, so that an agent that
//! lists once sees every server. Servers that run per agent are listed over a process of toolgate's
//! own, which ends afterwards.
//!
//! Invariant: such a link lists and does nothing else; a frozen server is not started for it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use toolgate_admission::access::Grant;
use toolgate_admission::list_kind::Kind;
use toolgate_admission::start_denied::StartDenied;
use toolgate_store::{Document, Store};
use toolgate_upstream::failure::Failure;
use toolgate_upstream::link::Server;
use toolgate_upstream::list_cache::Advertised;
use toolgate_upstream::lists::definition;
use toolgate_upstream::stored_lists::SPACE;

use super::Gateway;

/// How many servers are listed at once.
pub(super) const AT_ONCE: usize = 8;
/// How many times a failed listing is repeated.
const RETRIES: u32 = 6;
/// How long a test of a server may take.
const TEST: Duration = Duration::from_mins(1);

/// Why a test of a server failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotListed {
    /// It is not configured.
    #[error("there is no such server")]
    Unknown,
    /// It may not be started.
    #[error(transparent)]
    StartDenied(#[from] StartDenied),
    /// It failed; how, for people.
    #[error("{0}")]
    Failed(String),
    /// It took too long.
    #[error("no answer within {TEST:?}")]
    TooSlow,
}

impl Gateway {
    /// Sets how long a list waits for servers that are starting and were never listed.
    pub fn set_list_wait(&self, wait: Duration) {
        self.list_wait.store(Arc::new(wait));
        for server in self.servers.load().iter() {
            server.list_cache.set_list_wait(wait);
        }
    }

    /// Lists every server that toolgate has not listed yet, or whose tools an agent lists while no
    /// process of its own runs, in the background. Called periodically.
    pub fn list_new_servers(&self) {
        self.notify_quarantined();
        self.list_in_background(false);
    }

    /// Lists servers that were never listed, and waits for them as a list does.
    pub async fn list_unlisted_servers(&self) {
        self.list_in_background(true);
        let now = Instant::now();
        for server in self.servers().iter() {
            server.list_cache.wait_for_first_list(now).await;
        }
    }

    /// Lists a server now, and returns its tools by its own names. An earlier failure does not delay
    /// it.
    pub async fn test_server(&self, name: &str) -> Result<Vec<String>, NotListed> {
        let (_, known) = self.list_server(name).await?;
        let tools = known.iter().flat_map(|known| known.list(Kind::Tools).entries());
        Ok(tools.map(|(own, _)| own.to_owned()).collect())
    }

    /// Lists a server now, and returns the definitions of its tools as the server wrote them.
    pub async fn list_definitions(&self, name: &str) -> Result<Vec<String>, NotListed> {
        let server = self.server(name).ok_or(NotListed::Unknown)?;
        self.look_at(&server).await
    }

    /// The same for a server that may not be one of this gateway. Nothing of it is kept.
    pub async fn look_at(&self, server: &Arc<Server>) -> Result<Vec<String>, NotListed> {
        let name = server.name();
        if let Some(denied) = self.admission.start_denied(&of_toolgate(), name) {
            return Err(denied.into());
        }
        let link = server.own_link(&self.tasks);
        let fetched = timeout(TEST, link.fetch_tools()).await;
        link.end_own().await;
        let tools = match fetched {
            Ok(Ok(tools)) => tools,
            Ok(Err(failure)) => return Err(NotListed::Failed(failure.what(name))),
            Err(_) => return Err(NotListed::TooSlow),
        };
        let own = |(own, shown)| definition(Kind::Tools, &server.naming, own, shown);
        Ok(tools.entries().filter_map(own).collect())
    }

    async fn list_server(
        &self,
        name: &str,
    ) -> Result<(Arc<Server>, Option<Arc<Advertised>>), NotListed> {
        let server = self.server(name).ok_or(NotListed::Unknown)?;
        if let Some(denied) = self.admission.start_denied(&of_toolgate(), name) {
            return Err(denied.into());
        }
        server.reset_backoff();
        let listing = async {
            let link = server.own_link(&self.tasks);
            let listed = link.list_now().await;
            let known = server.list_cache.of(link.client_profile());
            link.end_own().await;
            listed.map(|()| known)
        };
        match timeout(TEST, listing).await {
            Ok(Ok(known)) => Ok((server, known)),
            Ok(Err(failure)) => Err(NotListed::Failed(failure.what(name))),
            Err(_) => Err(NotListed::TooSlow),
        }
    }

    /// Restores the lists that an earlier process stored, and removes those of servers that no
    /// longer exist.
    pub fn restore_lists(&self, stored: &[Document], store: &dyn Store) {
        let mut gone = Vec::new();
        for Document { key, json, .. } in stored {
            match self.server(key) {
                Some(server) if server.restore_lists(json) => {}
                _ => gone.push(Arc::clone(key)),
            }
        }
        if !gone.is_empty() {
            store.keep_documents(SPACE, Vec::new(), gone);
        }
    }

    /// Stores the lists that have changed.
    pub fn store_lists(&self, store: &dyn Store) {
        let servers = self.servers();
        let changed = servers.iter().filter_map(|server| {
            let json = server.changed_lists()?;
            Some((server.name().into(), json.into()))
        });
        let changed: Vec<_> = changed.collect();
        if !changed.is_empty() {
            store.keep_documents(SPACE, changed, Vec::new());
        }
    }

    fn list_in_background(&self, again: bool) {
        for server in self.servers().iter() {
            let denied = self.admission.start_denied(&of_toolgate(), server.name());
            if denied.is_some() {
                continue;
            }
            let began = Instant::now();
            let wanted = server.claim_wanted_listing(began);
            if wanted.is_none() && !server.claim_own_listing(again) {
                continue;
            }
            server.list_cache.note_request();
            let (server, draining) = (Arc::clone(server), self.draining.clone());
            let (tasks, listings) = (self.tasks.clone(), Arc::clone(&self.listings));
            self.tasks.spawn(async move {
                let mut failures = 0;
                let listing = async {
                    loop {
                        let place = listings.acquire().await;
                        let link = match wanted.clone() {
                            Some(wanted) => server.own_link_as(wanted, &tasks),
                            None => server.own_link(&tasks),
                        };
                        let listed = link.list_now().await;
                        link.end_own().await;
                        drop(place);
                        let Err(failure) = listed else { return };
                        let Some(pause) = pause_before_retry(&server, &failure, failures) else {
                            return;
                        };
                        failures += 1;
                        sleep(pause).await;
                    }
                };
                draining.run_until_cancelled(listing).await;
                server.end_own_listing(began, Instant::now());
            });
        }
    }
}

/// The pause before a failed listing is repeated; `None` if it is not.
fn pause_before_retry(server: &Server, failure: &Failure, failures: u32) -> Option<Duration> {
    let why = failure.what(server.name());
    tracing::debug!(server = server.name(), why, "server not listed");
    if failures >= RETRIES || server.is_retired() || server.list_cache.is_listed() {
        return None;
    }
    let pause = Duration::from_secs(1 << failures.min(6));
    Some(failure.retry_after().unwrap_or_default().max(pause))
}

/// The grant on whose behalf toolgate lists servers.
fn of_toolgate() -> Grant {
    Grant { label: "(toolgate)".into(), is_trial: true, ..Grant::default() }
}
