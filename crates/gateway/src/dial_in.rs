//! Sessions: programs that dial in over WebSocket and publish tools.
//!
//! [`SessionDriver`] drives the machine of `toolgate-session`; the edge connects sockets to it. A call
//! takes two steps: the driver selects its session, so that the call can be decided and counted; then
//! it is sent with its permit ([`Sending`]).
//!
//! Invariant: everything that is shown or named to an agent is within its grant's reach.
//! Invariant: without a permit there is no [`Sending`], and without one no call reaches a session.
//! Invariant: a call waits for its turn, and perhaps for its session; the owner of the socket asks
//! the call's [`Gate`] immediately before the write.
//!
//! Start at `dial_in/call.rs`, then `dial_in/driver.rs`.

mod call;
mod class;
mod driver;
mod facts;
mod gate;
mod record;
mod running_calls;
pub(crate) mod schema;
mod tool_list;

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::oneshot;
use toolgate_policy::Class;
use toolgate_session::{CallAnswer, CallTarget, KnownSessionTool, SessionFailure, Tool};
use toolgate_store::Permit;
use toolgate_upstream::metrics::ServerMetrics;
use toolgate_upstream::pins::{Facts, Meeting, PinMode, Reason, ServerPins};

pub(crate) use self::call::start;
pub use self::class::SessionClasses;
pub use self::driver::{DriverEnvironment, SessionDriver, SocketCommand};
use self::facts::SessionFacts;
pub use self::gate::Gate;
pub use self::record::{Note, Records};
pub(crate) use self::running_calls::{RunningCall, RunningCalls};
use self::schema::Schemas;
pub(crate) use self::tool_list::ToolList;

/// Everything about sessions that agent sessions use.
pub(crate) struct DialIn {
    pub(crate) driver: Arc<SessionDriver>,
    schemas: Schemas,
    /// Risk classes that the operator has set.
    classes: ArcSwap<SessionClasses>,
    metrics: ServerMetrics,
    facts: SessionFacts,
    /// Which definitions may be used.
    pins: Arc<ServerPins>,
    pin: ArcSwap<PinMode>,
}

/// Why a call has no target.
#[derive(Debug)]
pub(crate) struct Unresolved {
    /// What the agent receives.
    pub(crate) failure: SessionFailure,
    /// Whether the tool has an output schema.
    pub(crate) has_output_schema: bool,
}

/// An admitted call: its target, and the permit to send it.
#[derive(Debug)]
pub(crate) struct Sending {
    target: CallTarget,
    permit: Permit,
    gate: Arc<Gate>,
}

/// A call under way.
#[derive(Debug)]
pub(crate) struct Sent {
    /// Its number, for [`SessionDriver::cancel`].
    pub(crate) call: u64,
    /// Its end.
    pub(crate) answer: oneshot::Receiver<CallAnswer>,
}

impl DialIn {
    pub(crate) fn new(
        driver: Arc<SessionDriver>,
        metrics: ServerMetrics,
        pins: Arc<ServerPins>,
    ) -> Self {
        let (schemas, classes) = (Schemas::default(), ArcSwap::default());
        let (facts, pin) = (SessionFacts::default(), ArcSwap::from_pointee(PinMode::Off));
        Self { driver, schemas, classes, metrics, facts, pins, pin }
    }

    /// What happens to new and changed definitions.
    pub(crate) fn set_pin(&self, pin: PinMode) {
        self.pin.store(Arc::new(pin));
    }

    /// Grows with every change of what is quarantined.
    pub(crate) fn pins_revision(&self) -> u64 {
        self.pins.revision()
    }

    /// What is known of a definition.
    pub(crate) fn facts(&self, tool: &Arc<Tool>) -> Arc<Facts> {
        self.facts.of(tool)
    }

    /// Why a tool of sessions of this kind is quarantined. Its definition is recorded.
    pub(crate) fn quarantine(&self, kind: &str, tool: &Arc<Tool>) -> Option<Reason> {
        let met = [(pin_key(kind, &tool.name).into(), self.facts(tool))];
        let mode = **self.pin.load();
        let class = |_: &str, _: &Facts| self.class_of_kind(kind, tool);
        // Sessions come and go, so there is no complete list of them.
        self.pins.meet(&met, &Meeting { mode, is_whole: false, class: &class });
        let [(own, facts)] = met;
        self.pins.quarantine(mode, &own, &facts)
    }

    /// The risk class of a tool, whichever kind of session is called.
    pub(crate) fn class(&self, known: &KnownSessionTool) -> Class {
        self.classes.load().of(known)
    }

    /// The risk class of a tool of sessions of this kind.
    pub(crate) fn class_of_kind(&self, kind: &str, tool: &Tool) -> Class {
        self.classes.load().of_kind(kind, tool)
    }

    pub(crate) fn set_classes(&self, classes: SessionClasses) {
        self.classes.store(Arc::new(classes));
    }
}

/// The name under which a tool of sessions of one kind is pinned.
pub(crate) fn pin_key(kind: &str, tool: &str) -> String {
    format!("{kind}/{tool}")
}

impl Sending {
    pub(crate) fn new(target: CallTarget, permit: Permit, gate: Arc<Gate>) -> Self {
        Self { target, permit, gate }
    }

    /// The target, and the gate to ask immediately before the write. Consumes the permit.
    pub(crate) fn spend(self) -> (CallTarget, Arc<Gate>) {
        tracing::trace!(call = %self.permit.call_id(), "sent");
        (self.target, self.gate)
    }
}
