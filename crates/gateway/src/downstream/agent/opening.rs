//! The parts of a new agent session.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use toolgate_admission::access::Grant;
use toolgate_admission::admit::Admission;
use toolgate_admission::call_context::Sender;
use toolgate_audit::Hash;
use toolgate_json::{peek, text};
use toolgate_upstream::event_buffer::EventBuffer;
use toolgate_upstream::resubscribe::ServerSubscriptions;

use super::{AgentSession, Aggregate};
use crate::dial_in::DialIn;
use crate::downstream::change_tracking::ChangeTracker;
use crate::downstream::coarse_timer::CoarseTimer;
use crate::downstream::endpoint::Endpoint;
use crate::downstream::streams::Streams;

/// What an agent session is opened with.
pub(crate) struct Opening {
    pub(crate) id: String,
    pub(crate) key: u64,
    pub(crate) endpoint: Endpoint,
    /// The `params` of its `initialize`.
    pub(crate) params: Bytes,
    pub(crate) grant: Arc<Grant>,
    pub(crate) dial_in: Option<Arc<DialIn>>,
    /// The name of its clients in the audit and for policies, if it serves clients of protocol
    /// 2026-07-28.
    pub(crate) implicit: Option<Arc<str>>,
    /// Serves it on `/mcp`.
    pub(crate) aggregate: &'static dyn Aggregate,
}

impl AgentSession {
    pub(crate) fn new(
        opening: Opening,
        tasks: TaskTracker,
        timer: Arc<CoarseTimer>,
        admission: Arc<Admission>,
    ) -> Arc<Self> {
        let Opening { id, key, endpoint, params, grant, dial_in, implicit, aggregate } = opening;
        let client = std::str::from_utf8(&params).ok().and_then(|params| {
            Some(text(peek(params, &["clientInfo", "name"]).ok()??)?.as_ref().into())
        });
        let person = grant.acting.as_ref().map(|acting| Arc::clone(&acting.person));
        let acting = grant.acting.as_ref();
        let via = acting.map_or_else(|| endpoint.via(&grant), |acting| acting.via.into());
        let is_implicit = implicit.is_some();
        let agent_session = implicit.unwrap_or_else(|| public(&id));
        Arc::new(Self {
            id,
            key,
            endpoint,
            opening: params,
            sender: Sender { grant: Arc::clone(&grant), agent_session, client, via, person },
            grant: ArcSwap::new(grant),
            admission,
            version: OnceLock::new(),
            dial_in,
            running: Arc::default(),
            links: ArcSwap::default(),
            former: Mutex::default(),
            general: Arc::new(EventBuffer::new(0)),
            streams: Mutex::new(Streams::default()),
            next_stream: AtomicU64::new(1),
            asked: Mutex::new(HashMap::new()),
            next_asked: AtomicU64::new(1),
            server_subscriptions: ServerSubscriptions::default(),
            aggregate,
            is_implicit,
            changes: ChangeTracker::default(),
            listening: AtomicBool::new(false),
            cut_off: AtomicBool::new(false),
            readers: AtomicUsize::new(0),
            last_use: Mutex::new(Instant::now()),
            tasks,
            timer,
        })
    }
}

/// The public name of an agent session; its id is a secret of the agent.
pub(crate) fn public(id: &str) -> Arc<str> {
    Hash::of(id.as_bytes()).to_string().get(..16).unwrap_or_default().into()
}
