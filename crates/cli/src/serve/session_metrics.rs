//! What `/metrics` says of sessions. Label values come from fixed lists.

use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use toolgate_gateway::SessionDriver;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct State {
    state: &'static str,
}

type Gauges = Family<State, Gauge>;

/// Puts the gauges into `registry`; what is given back sets them to what there is now.
pub(crate) fn register(
    registry: &mut Registry,
    driver: Arc<SessionDriver>,
) -> Box<dyn Fn() + Send + Sync> {
    let [sessions, sockets, calls] = [Gauges::default(), Gauges::default(), Gauges::default()];
    registry.register("sessions", "Programs that have dialled in", sessions.clone());
    registry.register("session_sockets", "WebSockets of programs", sockets.clone());
    registry.register("session_calls", "Calls to sessions that have not ended", calls.clone());
    Box::new(move || {
        let counts = driver.counts();
        let all = [
            (&sessions, "active", counts.sessions - counts.disconnected),
            (&sessions, "disconnected", counts.disconnected),
            (&sockets, "registered", counts.sockets - counts.anonymous),
            (&sockets, "anonymous", counts.anonymous),
            (&calls, "running", counts.inflight),
            (&calls, "queued", counts.queued),
        ];
        for (gauges, state, count) in all {
            gauges.get_or_create(&State { state }).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    })
}
