//! What the gateway asks of the switchboard.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::oneshot;
use toolgate_gateway::{Sending, Sent, Sessions, Showing, Unresolved};
use toolgate_session::{
    CallArguments, CallNumber, CallTarget, Effect, Input, KnownSessionTool, Reach, SessionCall,
    SessionFailure, ViewId,
};

use super::switchboard::{Switchboard, Waiting};

/// How many different lists are kept ready.
const SHELF: usize = 256;

impl Sessions for Switchboard {
    fn showing(&self, reach: &Arc<Reach>) -> Arc<Showing> {
        let mut state = self.state.lock();
        let revision = state.machine.revision();
        if let Some((made_at, showing)) = state.shelf.get(reach)
            && *made_at == revision
        {
            return Arc::clone(showing);
        }
        let showing = Arc::new(Showing::new(&state.machine.published(reach)));
        if state.shelf.len() >= SHELF {
            state.shelf.clear();
        }
        state.shelf.insert(Arc::clone(reach), (revision, Arc::clone(&showing)));
        showing
    }

    fn known(&self, name: &str, reach: &Reach) -> Option<KnownSessionTool> {
        self.state.lock().machine.known(name, reach)
    }

    fn resolve(
        &self,
        name: &str,
        arguments: Option<&str>,
        reach: &Reach,
    ) -> Result<CallTarget, Unresolved> {
        let asked = CallArguments::read(arguments);
        let state = self.state.lock();
        state.machine.resolve(name, &asked, reach).map_err(|failure| Unresolved {
            failure,
            has_output_schema: state.machine.has_output_schema(name, reach),
        })
    }

    fn call(&self, sending: Sending) -> Result<Sent, SessionFailure> {
        let (target, gate) = sending.spend();
        let Some(random) = self.random() else {
            let session_id = Arc::clone(&target.session_id);
            return Err(SessionFailure::SessionGone { session_id, effect: Effect::NotStarted });
        };
        let call = CallNumber(self.number());
        let (answered, answer) = oneshot::channel();
        self.state.lock().waiting.insert(call, Waiting { answered, gate });
        self.hear(Input::Call(SessionCall { call, target, random }));
        Ok(Sent { call: call.0, answer })
    }

    fn cancel(&self, call: u64) {
        self.hear(Input::Cancel { call: CallNumber(call) });
    }

    fn list(&self, reach: &Reach) -> Value {
        self.state.lock().machine.session_list(reach, self.now())
    }

    fn operator_list(&self) -> Value {
        self.state.lock().machine.operator_list(self.now())
    }

    fn reset(&self, arguments: Option<&str>, reach: &Reach) -> Result<Value, SessionFailure> {
        let mut result = Err(SessionFailure::InvalidArguments { what: String::new() });
        self.tell_machine(|machine, now| match machine.tools_cache_reset(arguments, reach, now) {
            Ok((value, outputs)) => {
                result = Ok(value);
                outputs
            }
            Err(failure) => {
                result = Err(failure);
                machine.handle(Input::Wake, now)
            }
        });
        result
    }

    fn watch(&self, reaches: Vec<Arc<Reach>>) {
        let (mut gone, mut new) = (Vec::new(), Vec::new());
        {
            let mut state = self.state.lock();
            for (_, view) in state.views.extract_if(|reach, _| !reaches.contains(reach)) {
                gone.push(view);
            }
            for reach in reaches {
                if !state.views.contains_key(&reach) {
                    let view = ViewId(self.number());
                    state.views.insert(Arc::clone(&reach), view);
                    new.push((view, reach));
                }
            }
        }
        for view in gone {
            self.hear(Input::Unwatch { view });
        }
        for (view, reach) in new {
            self.hear(Input::Watch { view, reach });
        }
    }

    fn set_servers(&self, mut names: Vec<String>) {
        names.sort_unstable();
        names.dedup();
        self.tell_machine(|machine, now| machine.set_servers(names, now));
    }

    fn on_change(&self, told: Box<dyn Fn(&Reach) + Send + Sync>) {
        if self.changed.set(told).is_err() {
            tracing::warn!("changes of sessions are told to somebody else already");
        }
    }
}
