//! The driver's interface for the gateway: lists, the target of a call, and the call itself.
//!
//! Invariant: everything that is shown or named to an agent is within its grant's reach, which is
//! part of every query.
//! Invariant: a call reaches the machine only as a [`Sending`], which has a permit.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::oneshot;
use toolgate_session::{
    CallArguments, CallNumber, CallTarget, Effect, Input, KnownSessionTool, ListSource, Reach,
    SessionCall, SessionFailure, ViewId,
};

use super::{PendingCall, SessionDriver, off_worker};
use crate::dial_in::{Sending, Sent, ToolList, Unresolved};

/// How many lists are kept, and how many bytes of them.
const MAX_LISTS: usize = 256;
const MAX_LIST_BYTES: usize = 64 * 1024 * 1024;

/// Lists that were written, by reach, with the machine's revision.
#[derive(Debug, Default)]
pub(super) struct KeptLists(HashMap<Arc<Reach>, (u64, Arc<ToolList>)>);

impl SessionDriver {
    /// The tools that a grant sees.
    pub(crate) fn tools(&self, reach: &Arc<Reach>) -> Arc<ToolList> {
        let revision = self.state.lock().machine.revision();
        if let Some(lists) = self.lists.try_lock()
            && let Some(list) = lists.get(reach, revision)
        {
            return list;
        }
        let (revision, source) = {
            let state = self.state.lock();
            (state.machine.revision(), state.machine.list_source(reach))
        };
        // One list is written at a time, so that agents with the same reach share the work.
        off_worker(true, || self.lists.lock().get_or_write(reach, revision, &source))
    }

    /// The tool that a grant knows by this name.
    pub(crate) fn known(&self, name: &str, reach: &Reach) -> Option<KnownSessionTool> {
        self.state.lock().machine.known(name, reach)
    }

    /// Selects the session of a call. Changes nothing.
    pub(crate) fn resolve(
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

    /// Sends a call. Its end arrives through the receiver, exactly once.
    pub(crate) fn call(&self, sending: Sending) -> Result<Sent, SessionFailure> {
        let (target, gate) = sending.spend();
        let Some(random) = self.random() else {
            let session_id = Arc::clone(&target.session_id);
            return Err(SessionFailure::SessionGone { session_id, effect: Effect::NotStarted });
        };
        let call = CallNumber(self.number());
        let (answered, answer) = oneshot::channel();
        self.state.lock().calls.insert(call, PendingCall { answered, gate });
        self.handle(Input::Call(SessionCall { call, target, random }));
        Ok(Sent { call: call.0, answer })
    }

    /// Cancels a call. Its end still arrives.
    pub(crate) fn cancel(&self, call: u64) {
        self.handle(Input::Cancel { call: CallNumber(call) });
    }

    /// The result of `session_list`.
    pub(crate) fn list(&self, reach: &Reach) -> Value {
        self.state.lock().machine.session_list(reach, self.now())
    }

    /// The list for operators: all sessions with their problems, and the sockets that have not
    /// registered.
    pub fn operator_list(&self) -> Value {
        self.state.lock().machine.operator_list(self.now())
    }

    /// The result of `tools_cache_reset`.
    pub(crate) fn reset(
        &self,
        arguments: Option<&str>,
        reach: &Reach,
    ) -> Result<Value, SessionFailure> {
        let mut result = Err(SessionFailure::InvalidArguments { what: String::new() });
        self.drive(|machine, now| match machine.tools_cache_reset(arguments, reach, now) {
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

    /// Reports changes of the lists of these reaches, and of no others.
    pub(crate) fn watch(&self, reaches: Vec<Arc<Reach>>) {
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
            self.handle(Input::Unwatch { view });
        }
        for (view, reach) in new {
            self.handle(Input::Watch { view, reach });
        }
    }

    /// The active servers: no session tool is published under one of their names.
    pub(crate) fn set_servers(&self, mut names: Vec<String>) {
        names.sort_unstable();
        names.dedup();
        self.drive(|machine, now| machine.set_servers(names, now));
    }

    /// Sets what receives the reach whose list has changed; once.
    pub(crate) fn on_change(&self, receiver: Box<dyn Fn(&Reach) + Send + Sync>) {
        if self.on_change.set(receiver).is_err() {
            tracing::warn!("receiver of session list changes set twice; keeping the first");
        }
    }
}

impl KeptLists {
    fn get(&self, reach: &Arc<Reach>, revision: u64) -> Option<Arc<ToolList>> {
        let (made_at, list) = self.0.get(reach)?;
        (*made_at == revision).then(|| Arc::clone(list))
    }

    fn get_or_write(
        &mut self,
        reach: &Arc<Reach>,
        revision: u64,
        source: &ListSource,
    ) -> Arc<ToolList> {
        if let Some(list) = self.get(reach, revision) {
            return list;
        }
        // The outdated one is dropped before the new one is written.
        self.0.remove(reach);
        let list = Arc::new(ToolList::write(source));
        let bytes: usize = self.0.values().map(|(_, list)| list.bytes()).sum();
        if self.0.len() >= MAX_LISTS || bytes + list.bytes() > MAX_LIST_BYTES {
            self.0.clear();
        }
        self.0.insert(Arc::clone(reach), (revision, Arc::clone(&list)));
        list
    }
}
