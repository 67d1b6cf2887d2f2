//! Programs that dial in, as a double: the real session machine says what is published and where a
//! call goes; nothing is ever sent, and the driver panics when it is told to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolgate_gateway::{Sending, Sent, Sessions, Showing, Unresolved};
use toolgate_session::{
    Asked, Failure, Input, Known, Millis, Reach, Sessions as Machine, Settings, SocketId, Target,
    Token,
};

const NOW: Millis = Millis(1_700_000_000_000);

/// One program with the tool `find`, and its driver.
pub(crate) struct Dialled {
    machine: Mutex<Machine>,
    panics: AtomicBool,
}

impl Dialled {
    pub(crate) fn new() -> Arc<Self> {
        let mut machine = Machine::new(Settings::default(), [], NOW);
        let (socket, token) = (SocketId(1), Arc::new(Token::default()));
        machine.handle(Input::Opened { socket, token }, NOW);
        let tool = json!({"name": "find", "input_schema": {"type": "object"}});
        let params = json!({
            "client_uid": "u", "kind": "k", "version": "1.0", "infobase_name": "b",
            "ib_session_number": 1, "host_id": "h", "pid": 1, "tools": [tool],
        });
        let text =
            json!({"jsonrpc": "2.0", "id": 1, "method": "session.register", "params": params});
        machine.handle(Input::Frame { socket, text: &text.to_string() }, NOW);
        Arc::new(Self { machine: Mutex::new(machine), panics: AtomicBool::new(false) })
    }

    /// From now on the driver panics, or no longer.
    pub(crate) fn panic(&self, panics: bool) {
        self.panics.store(panics, Ordering::SeqCst);
    }

    fn may_panic(&self) {
        assert!(!self.panics.load(Ordering::SeqCst), "on purpose");
    }
}

impl Sessions for Dialled {
    fn showing(&self, reach: &Arc<Reach>) -> Arc<Showing> {
        Arc::new(Showing::new(&self.machine.lock().published(reach)))
    }

    fn known(&self, name: &str, reach: &Reach) -> Option<Known> {
        self.machine.lock().known(name, reach)
    }

    fn resolve(
        &self,
        name: &str,
        arguments: Option<&str>,
        reach: &Reach,
    ) -> Result<Target, Unresolved> {
        let resolved = self.machine.lock().resolve(name, &Asked::read(arguments), reach);
        resolved.map_err(|failure| Unresolved { failure, has_output_schema: false })
    }

    fn call(&self, sending: Sending) -> Result<Sent, Failure> {
        self.may_panic();
        let (target, _) = sending.spend();
        let effect = toolgate_session::Effect::NotStarted;
        Err(Failure::SessionGone { session_id: target.session_id, effect })
    }

    fn cancel(&self, _: u64) {}

    fn list(&self, reach: &Reach) -> Value {
        self.may_panic();
        self.machine.lock().session_list(reach, NOW)
    }

    fn operator_list(&self) -> Value {
        Value::Null
    }

    fn reset(&self, _: Option<&str>, _: &Reach) -> Result<Value, Failure> {
        Ok(Value::Null)
    }

    fn watch(&self, _: Vec<Arc<Reach>>) {}

    fn set_servers(&self, _: Vec<String>) {}

    fn on_change(&self, _: Box<dyn Fn(&Reach) + Send + Sync>) {}
}
