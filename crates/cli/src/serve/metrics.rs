//! `/metrics`: everything that is counted, in the OpenMetrics text format.
//!
//! Counters are kept where things happen; gauges of the audit, the store and sessions are read when
//! the metrics are.
//!
//! Invariant: label values come from the configuration or from fixed lists, never from an agent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use tokio::time::timeout;
use toolgate_edge::admin_listener::Text;
use toolgate_gateway::{Admission, Gateway, Metrics, SessionDriver};
use toolgate_store::Store;

/// How long the store may take to answer; the values of the last answer are shown after that.
const PATIENCE: Duration = Duration::from_secs(1);

/// Encodes the metrics of this gateway.
pub(crate) fn text(gateway: &Arc<Gateway>, driver: Option<&Arc<SessionDriver>>) -> Text {
    let mut registry = Registry::with_prefix("toolgate");
    let gauges = register(&mut registry, gateway.metrics(), gateway.admission());
    gauges.started.set(seconds(Timestamp::now()));
    let (registry, gauges) = (Arc::new(registry), Arc::new(gauges));
    let (store, driver) = (Arc::clone(gateway.admission().store()), driver.cloned());
    Arc::new(move || {
        let (registry, gauges) = (Arc::clone(&registry), Arc::clone(&gauges));
        let (store, driver) = (Arc::clone(&store), driver.clone());
        Box::pin(async move {
            gauges.read_store(&*store).await;
            if let Some(driver) = driver {
                gauges.sessions.read(&driver);
            }
            let mut text = String::new();
            match encode(&mut text, &registry) {
                Ok(()) => text,
                Err(error) => format!("# {error}\n"),
            }
        })
    })
}

/// Registers everything; returns the gauges that are set when the metrics are read.
fn register(registry: &mut Registry, metrics: &Metrics, admission: &Admission) -> Gauges {
    let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
    registry.register("build", "The version of toolgate", build);
    admission.metrics().register(registry);
    admission.auth_failures().register(registry);
    admission.holds().register(registry);
    metrics.register(registry);
    Gauges::register(registry)
}

type Seconds = Gauge<f64, AtomicU64>;

/// Gauges that are set when the metrics are read.
struct Gauges {
    started: Seconds,
    rows: Gauge,
    open_calls: Gauge,
    checkpoint_row: Gauge,
    checkpoint_time: Seconds,
    sync_lag: Seconds,
    approvals_pending: Gauge,
    approval_oldest: Seconds,
    writes: Counter,
    failed_writes: Counter,
    sessions: SessionGauges,
}

struct SessionGauges {
    active: Gauge,
    disconnected: Gauge,
    sockets: Gauge,
    anonymous: Gauge,
    running: Gauge,
    queued: Gauge,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

impl Gauges {
    fn register(registry: &mut Registry) -> Self {
        let writes = Family::<ResultLabel, Counter>::default();
        let count = |result| writes.get_or_create(&ResultLabel { result }).clone();
        let (ok, failed) = (count("ok"), count("failed"));
        let help = "Transactions of the store; concurrent calls share one";
        registry.register("store_writes", help, writes);
        Self {
            started: in_seconds(registry, "start_time", "When toolgate started (Unix time)"),
            rows: gauge(registry, "audit_rows", "Height of the audit: number of its last row"),
            open_calls: gauge(registry, "open_calls", "Admitted calls that have not ended"),
            checkpoint_row: gauge(
                registry,
                "audit_checkpoint_row",
                "Number of the last row that a signed checkpoint covers",
            ),
            checkpoint_time: in_seconds(
                registry,
                "audit_checkpoint_timestamp",
                "When the last checkpoint was signed (Unix time)",
            ),
            sync_lag: in_seconds(
                registry,
                "audit_sync_lag",
                "How long the oldest row that is not on the disk yet has waited",
            ),
            approvals_pending: gauge(
                registry,
                "approvals_pending",
                "Held calls that wait for the answer of a person",
            ),
            approval_oldest: in_seconds(
                registry,
                "approval_oldest",
                "How long the oldest of them has waited; 0 if there is none",
            ),
            writes: ok,
            failed_writes: failed,
            sessions: SessionGauges::register(registry),
        }
    }

    async fn read_store(&self, store: &dyn Store) {
        let activity = store.activity();
        self.writes.inner().store(activity.writes, Ordering::Relaxed);
        self.failed_writes.inner().store(activity.failed_writes, Ordering::Relaxed);
        self.sync_lag.set(activity.sync_lag.as_secs_f64());
        let Ok(Ok(status)) = timeout(PATIENCE, store.status()).await else { return };
        set(&self.rows, status.head.seq);
        set(&self.open_calls, status.open);
        if let Some(checkpoint) = status.checkpoint {
            set(&self.checkpoint_row, checkpoint.seq);
            self.checkpoint_time.set(seconds(checkpoint.time));
        }
        let Ok(Ok(pending)) = timeout(PATIENCE, store.pending_approvals()).await else { return };
        set(&self.approvals_pending, pending.count);
        let age = pending.oldest.map(|oldest| Timestamp::now().duration_since(oldest));
        self.approval_oldest.set(age.map_or(0.0, |age| age.as_secs_f64().max(0.0)));
    }
}

impl SessionGauges {
    fn register(registry: &mut Registry) -> Self {
        let mut gauge = |name, help| gauge(registry, name, help);
        Self {
            active: gauge("sessions", "Connected sessions"),
            disconnected: gauge("sessions_disconnected", "Sessions in their grace period"),
            sockets: gauge("session_sockets", "WebSockets of sessions"),
            anonymous: gauge("session_sockets_unregistered", "WebSockets without a session"),
            running: gauge("session_calls_running", "Calls that sessions are executing"),
            queued: gauge("session_calls_queued", "Calls that wait for a session"),
        }
    }

    fn read(&self, driver: &SessionDriver) {
        let counts = driver.counts();
        let size = |size: usize| u64::try_from(size).unwrap_or(u64::MAX);
        set(&self.active, size(counts.sessions.saturating_sub(counts.disconnected)));
        set(&self.disconnected, size(counts.disconnected));
        set(&self.sockets, size(counts.sockets));
        set(&self.anonymous, size(counts.anonymous));
        set(&self.running, size(counts.inflight));
        set(&self.queued, size(counts.queued));
    }
}

fn gauge(registry: &mut Registry, name: &str, help: &str) -> Gauge {
    let gauge = Gauge::default();
    registry.register(name, help, gauge.clone());
    gauge
}

fn in_seconds(registry: &mut Registry, name: &str, help: &str) -> Seconds {
    let gauge = Seconds::default();
    registry.register_with_unit(name, help, Unit::Seconds, gauge.clone());
    gauge
}

fn set(gauge: &Gauge, value: u64) {
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
}

fn seconds(time: Timestamp) -> f64 {
    time.as_duration().as_secs_f64()
}

#[cfg(test)]
mod tests;
