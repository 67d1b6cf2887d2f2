//! Failed authentication: no valid token, a missing role, a foreign Host or Origin. Each failure is
//! counted and, within limits, logged and recorded in the audit.
//!
//! Invariant: of the request only the address of its client is logged or recorded.
//! Invariant: clients control neither the memory used here nor the number of rows and log lines
//! (`toolgate_audit::AuthFailureCounter`), and no request waits for a row.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use toolgate_audit::{AuthFailure, AuthFailureCounter, Draft};
use toolgate_store::Store;

use crate::environment::Clock;

/// The address that a request came from; listeners put it into the request's extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

/// A listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listener {
    /// Of agents.
    Mcp,
    /// Of programs that dial in.
    Sessions,
    /// Of people.
    Admin,
    /// Of metrics alone.
    Metrics,
}

/// Why a client was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthFailureReason {
    /// No token where one is needed.
    NoToken,
    /// A token that is unknown, expired or revoked, or a malformed header.
    BadToken,
    /// The token of a person whose roles do not allow the request.
    Role,
    /// A foreign Host header.
    Host,
    /// A foreign Origin header.
    Origin,
}

/// Counts, logs and records failed authentication.
pub struct AuthFailures {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    counts: Family<Labels, Counter>,
    minute: Mutex<AuthFailureCounter>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    listener: &'static str,
    reason: &'static str,
}

impl Listener {
    const ALL: [Self; 4] = [Self::Mcp, Self::Sessions, Self::Admin, Self::Metrics];

    fn as_str(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::Sessions => "sessions",
            Self::Admin => "admin",
            Self::Metrics => "metrics",
        }
    }
}

impl AuthFailureReason {
    const ALL: [Self; 5] = [Self::NoToken, Self::BadToken, Self::Role, Self::Host, Self::Origin];

    fn as_str(self) -> &'static str {
        match self {
            Self::NoToken => "no_token",
            Self::BadToken => "bad_token",
            Self::Role => "role",
            Self::Host => "host",
            Self::Origin => "origin",
        }
    }
}

impl AuthFailures {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        let counts = Family::<Labels, Counter>::default();
        // Present at zero, so that the first failure is seen as a change.
        for listener in Listener::ALL.map(Listener::as_str) {
            for reason in AuthFailureReason::ALL.map(AuthFailureReason::as_str) {
                drop(counts.get_or_create(&Labels { listener, reason }));
            }
        }
        Self { store, clock, counts, minute: Mutex::default() }
    }

    /// Registers the counters.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Requests rejected for a missing or invalid token, a missing role, or a foreign Host or Origin";
        registry.register("auth_failures", help, self.counts.clone());
    }

    /// A request of `peer` was rejected.
    pub fn refused(&self, listener: Listener, why: AuthFailureReason, peer: Option<Peer>) {
        let (listener, reason) = (listener.as_str(), why.as_str());
        self.counts.get_or_create(&Labels { listener, reason }).inc();
        let (now, peer) = (self.clock.now(), peer.map(|Peer(peer)| peer.to_canonical()));
        let refusal = AuthFailure { listener, reason, peer };
        let (due, row) = {
            let mut minute = self.minute.lock();
            (minute.due(now), minute.refused(refusal, now))
        };
        self.report(due);
        if let Some(row) = row {
            self.write(row);
            let peer = Shown(peer);
            tracing::warn!(listener, reason, %peer, "authentication failed");
        }
    }

    /// Logs and records the failures that were only counted, once their minute is over.
    pub fn tick(&self) {
        let due = self.minute.lock().due(self.clock.now());
        self.report(due);
    }

    /// Logs and records the failures that were only counted, at a stop or after a clock was accepted.
    pub fn flush(&self) {
        let due = self.minute.lock().restart(self.clock.now());
        self.report(due);
    }

    fn report(&self, due: Vec<(AuthFailure, u64, Draft)>) {
        for (AuthFailure { listener, reason, peer }, count, row) in due {
            let peer = Shown(peer);
            tracing::warn!(listener, reason, %peer, count, "further authentication failures");
            self.write(row);
        }
    }

    /// Submits the row without waiting for it. A store that cannot write logs that itself.
    fn write(&self, row: Draft) {
        drop(self.store.record(row));
    }
}

impl fmt::Debug for AuthFailures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthFailures").finish_non_exhaustive()
    }
}

/// An address, or the absence of a single one.
struct Shown(Option<IpAddr>);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(peer) => peer.fmt(f),
            None => f.write_str("several addresses"),
        }
    }
}
