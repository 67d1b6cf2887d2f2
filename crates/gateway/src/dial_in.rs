//! Sessions: programs that dial in and publish tools, as the gateway sees them.
//!
//! Whoever drives their sockets implements [`SessionMachine`]. A call takes two steps: where it goes is
//! found first ([`SessionMachine::resolve`]), so that it can be decided and counted; then it is sent
//! with the permit that came of that ([`Sending`]).
//!
//! Invariant: everything that is shown or named to an agent is within its grant's reach; the
//! driver is given the reach with every question.
//! Invariant: without a permit there is no [`Sending`], and without one no call reaches a session.
//! Invariant: a call waits for its turn, and perhaps for its session; whoever writes it asks its
//! [`Gate`] immediately before.
//!
//! Start at [`SessionMachine`], then `dial_in/call.rs`.

mod call;
mod class;
mod desk;
mod gate;
mod record;
mod running;
pub(crate) mod schema;
mod showing;

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::oneshot;
use toolgate_session::{CallAnswer, CallTarget, KnownSessionTool, Reach, SessionFailure};
use toolgate_store::Permit;

pub(crate) use self::call::start;
pub use self::class::SessionClasses;
pub(crate) use self::desk::Desk;
pub use self::gate::Gate;
pub use self::record::{Note, Records};
pub(crate) use self::running::Running;
pub use self::showing::Showing;

/// All sessions of the process.
pub trait Sessions: Send + Sync + 'static {
    /// The list that a grant sees.
    fn showing(&self, reach: &Arc<Reach>) -> Arc<Showing>;

    /// The tool that a grant knows by this name; none if it knows none such.
    fn known(&self, name: &str, reach: &Reach) -> Option<KnownSessionTool>;

    /// Where a call goes. Changes nothing.
    fn resolve(
        &self,
        name: &str,
        arguments: Option<&str>,
        reach: &Reach,
    ) -> Result<CallTarget, Unresolved>;

    /// Sends a call; its end comes by the receiver, exactly once.
    fn call(&self, sending: Sending) -> Result<Sent, SessionFailure>;

    /// Whoever called takes the call back. Its end is still told.
    fn cancel(&self, call: u64);

    /// The result of `session_list`.
    fn list(&self, reach: &Reach) -> Value;

    /// Everything that people may know: all sessions, what is wrong with them, sockets on which
    /// nobody has registered.
    fn operator_list(&self) -> Value;

    /// The result of `tools_cache_reset`.
    fn reset(&self, arguments: Option<&str>, reach: &Reach) -> Result<Value, SessionFailure>;

    /// From now on changes of what these see are told, and of nothing else.
    fn watch(&self, reaches: Vec<Arc<Reach>>);

    /// The servers in force: no session tool is published under a name of theirs.
    fn set_servers(&self, names: Vec<String>);

    /// Whom to tell that what `reach` sees has changed; to be given once.
    fn on_change(&self, told: Box<dyn Fn(&Reach) + Send + Sync>);
}

/// Why a call goes nowhere.
#[derive(Debug)]
pub struct Unresolved {
    /// What the agent is told.
    pub failure: SessionFailure,
    /// Whether the tool promises a shape for its results.
    pub has_output_schema: bool,
}

/// A call that was let in: where it goes, and the right to send it.
#[derive(Debug)]
pub struct Sending {
    target: CallTarget,
    permit: Permit,
    gate: Arc<Gate>,
}

/// A call on its way.
#[derive(Debug)]
pub struct Sent {
    /// Its number, for [`SessionMachine::cancel`].
    pub call: u64,
    /// Its end.
    pub answer: oneshot::Receiver<CallAnswer>,
}

impl Sending {
    pub(crate) fn new(target: CallTarget, permit: Permit, gate: Arc<Gate>) -> Self {
        Self { target, permit, gate }
    }

    /// Where it goes, and what to ask immediately before it is written; with this the permit is
    /// used up.
    pub fn spend(self) -> (CallTarget, Arc<Gate>) {
        tracing::trace!(call = %self.permit.call_id(), "sent");
        (self.target, self.gate)
    }
}
