//! Those who were not let in: no valid token, a role that is missing, a foreign Host or Origin. Each leaves a count, and,
//! within limits, a line in the log and a row of the audit.
//!
//! Invariant: nothing that they have sent is written anywhere; only their address is.
//! Invariant: strangers decide neither how much memory this takes nor how many rows and lines it
//! gives (`toolgate_audit::AuthFailureCounter`), and no request waits for a row.

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

/// Why somebody was not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stranger {
    /// No token where one is needed.
    NoToken,
    /// A token that is not known, has expired or was revoked, or a header that is no token.
    BadToken,
    /// The token of a person whose roles do not allow the request.
    Role,
    /// A Host that is not ours.
    Host,
    /// A page of somewhere else.
    Origin,
}

/// Counts and tells of those who were not let in.
pub struct Strangers {
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

impl Stranger {
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

impl Strangers {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        let counts = Family::<Labels, Counter>::default();
        // There from the start, so that the first one is seen as a change.
        for listener in Listener::ALL.map(Listener::as_str) {
            for reason in Stranger::ALL.map(Stranger::as_str) {
                drop(counts.get_or_create(&Labels { listener, reason }));
            }
        }
        Self { store, clock, counts, minute: Mutex::default() }
    }

    /// Puts what is counted into `registry`.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Requests refused before anything was done: no valid token, no role, a foreign Host or Origin";
        registry.register("refused", help, self.counts.clone());
    }

    /// Somebody was not let in.
    pub fn refused(&self, listener: Listener, why: Stranger, peer: Option<Peer>) {
        let (listener, reason) = (listener.as_str(), why.as_str());
        self.counts.get_or_create(&Labels { listener, reason }).inc();
        let (now, peer) = (self.clock.now(), peer.map(|Peer(peer)| peer.to_canonical()));
        let refusal = AuthFailure { listener, reason, peer };
        let (due, row) = {
            let mut minute = self.minute.lock();
            (minute.due(now), minute.refused(refusal, now))
        };
        self.tell(due);
        if let Some(row) = row {
            self.write(row);
            let peer = Shown(peer);
            tracing::warn!(listener, reason, %peer, "a request was refused");
        }
    }

    /// Tells of those that were only counted, once their minute is over.
    pub fn tick(&self) {
        let due = self.minute.lock().due(self.clock.now());
        self.tell(due);
    }

    /// Tells of those that were only counted, at a stop or when an earlier clock was accepted.
    pub fn flush(&self) {
        let due = self.minute.lock().restart(self.clock.now());
        self.tell(due);
    }

    fn tell(&self, due: Vec<(AuthFailure, u64, Draft)>) {
        for (AuthFailure { listener, reason, peer }, count, row) in due {
            let peer = Shown(peer);
            tracing::warn!(listener, reason, %peer, count, "more requests were refused");
            self.write(row);
        }
    }

    /// The store has it at once; its answer is for nobody. One that cannot write says so itself.
    fn write(&self, row: Draft) {
        drop(self.store.record(row));
    }
}

impl fmt::Debug for Strangers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Strangers").finish_non_exhaustive()
    }
}

/// An address as people read it.
struct Shown(Option<IpAddr>);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(peer) => peer.fmt(f),
            None => f.write_str("several addresses"),
        }
    }
}
