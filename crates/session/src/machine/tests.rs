//! Case by case: inputs and expected outputs.

mod calls;
mod joining;
mod leaving;
mod lists;
mod robust;
mod routing;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    CallArguments, CallNumber, CallTarget, Glob, Input, Millis, Output, Outputs, Reach,
    SessionCall, SessionFailure, SessionMachine, SessionSettings, SocketId, SocketToken, ViewId,
};

#[test]
fn the_machine_is_send() {
    fn is_send<T: Send>() {}
    is_send::<SessionMachine>();
}

/// The address of every socket.
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));

/// A machine, its clock, and its outputs as short lines.
pub(super) struct Harness {
    pub(super) gate: SessionMachine,
    pub(super) now: Millis,
    pub(super) reach: Reach,
}

impl Harness {
    pub(super) fn new() -> Self {
        Self::with(SessionSettings {
            ping_interval: None,
            dead_after: Duration::from_hours(1),
            ..SessionSettings::default()
        })
    }

    pub(super) fn with(settings: SessionSettings) -> Self {
        let now = Millis(1_700_000_000_000);
        Self { gate: SessionMachine::new(settings, [], now), now, reach: Reach::default() }
    }

    pub(super) fn open(&mut self, socket: u64, token: Option<u32>) -> &mut Self {
        self.open_with(socket, SocketToken { id: token, ..SocketToken::default() })
    }

    pub(super) fn open_with(&mut self, socket: u64, token: SocketToken) -> &mut Self {
        let (socket, token) = (SocketId(socket), Arc::new(token));
        let input = Input::Opened { socket, token, peer: Some(PEER) };
        assert!(self.gate.handle(input, self.now).list.is_empty());
        self
    }

    pub(super) fn say(&mut self, socket: u64, frame: &Value) -> Vec<String> {
        self.say_text(socket, &frame.to_string())
    }

    pub(super) fn say_text(&mut self, socket: u64, text: &str) -> Vec<String> {
        lines(self.gate.handle(Input::Frame { socket: SocketId(socket), text }, self.now))
    }

    pub(super) fn ask(
        &mut self,
        socket: u64,
        method: &str,
        params: impl Into<Value>,
    ) -> Vec<String> {
        let params: Value = params.into();
        self.say(socket, &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
    }

    pub(super) fn tell(
        &mut self,
        socket: u64,
        method: &str,
        params: impl Into<Value>,
    ) -> Vec<String> {
        let params: Value = params.into();
        self.say(socket, &json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    /// Opens a socket and registers with these tools.
    pub(super) fn join(
        &mut self,
        socket: u64,
        uid: &str,
        kind: &str,
        tools: &[&str],
    ) -> Vec<String> {
        self.open(socket, None);
        self.ask(socket, "session.register", card(uid, kind, "trade", tools))
    }

    pub(super) fn close(&mut self, socket: u64) -> Vec<String> {
        lines(self.gate.handle(Input::Closed { socket: SocketId(socket) }, self.now))
    }

    /// Time passes; every timer fires at its time.
    pub(super) fn pass(&mut self, time: Duration) -> Vec<String> {
        let end = self.now.after(time);
        let mut all = Vec::new();
        let mut wake = self.gate.done().wake_at;
        while let Some(at) = wake.filter(|at| *at <= end) {
            self.now = self.now.max(at);
            let outputs = self.gate.handle(Input::Wake, self.now);
            wake = outputs.wake_at;
            all.extend(lines(outputs));
        }
        self.now = end;
        all
    }

    pub(super) fn resolve(
        &self,
        name: &str,
        arguments: &str,
    ) -> Result<CallTarget, SessionFailure> {
        let target = self.gate.resolve(name, &CallArguments::read(Some(arguments)), &self.reach)?;
        target.check_keys(arguments).map(|()| target)
    }

    /// The error code, or the target and arguments.
    pub(super) fn route(&self, name: &str, arguments: &str) -> String {
        match self.resolve(name, arguments) {
            Ok(target) => format!("{} {}", target.session_id, target.arguments),
            Err(failure) => failure.error_code().to_owned(),
        }
    }

    pub(super) fn call(&mut self, call: u64, name: &str, arguments: &str) -> Vec<String> {
        let target = self.resolve(name, arguments).unwrap();
        let call = SessionCall { call: CallNumber(call), target, random: u128::from(call) };
        lines(self.gate.handle(Input::Call(call), self.now))
    }

    pub(super) fn cancel(&mut self, call: u64) -> Vec<String> {
        lines(self.gate.handle(Input::Cancel { call: CallNumber(call) }, self.now))
    }

    /// The client answers the call that was sent under this number.
    pub(super) fn reply(&mut self, socket: u64, number: u64, random: u64) -> Vec<String> {
        let wire = format!("mgr-{number}-{random:032x}");
        self.say(socket, &json!({"jsonrpc": "2.0", "id": wire, "result": {"content": []}}))
    }

    pub(super) fn input(&mut self, input: Input<'_>) -> Vec<String> {
        lines(self.gate.handle(input, self.now))
    }

    pub(super) fn watch(&mut self) -> Vec<String> {
        let reach = Arc::new(self.reach.clone());
        self.input(Input::Watch { view: ViewId(1), reach })
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.gate.published(&self.reach).tools.into_iter().map(|tool| tool.name).collect()
    }
}

pub(super) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[expect(clippy::unnecessary_wraps, reason = "as the fields have it")]
pub(super) fn only(glob: &str) -> Option<Vec<Glob>> {
    Some(vec![Glob::lenient(glob)])
}

pub(super) fn card(uid: &str, kind: &str, base: &str, tools: &[&str]) -> Value {
    let tool = |name: &&str| json!({"name": name, "input_schema": {"type": "object"}});
    json!({
        "client_uid": uid,
        "kind": kind,
        "version": "1",
        "infobase_name": base,
        "ib_session_number": 7,
        "tools": tools.iter().map(tool).collect::<Vec<_>>(),
    })
}

/// Outputs as short lines, without those for the store.
pub(super) fn lines(outputs: Outputs) -> Vec<String> {
    outputs.list.into_iter().filter_map(|output| line(&output)).collect()
}

fn line(output: &Output) -> Option<String> {
    Some(match output {
        Output::Send { socket, frame } | Output::SendCall { socket, frame, .. } => {
            format!("send {} {}", socket.0, std::str::from_utf8(frame).unwrap())
        }
        Output::Ping { socket } => format!("ping {}", socket.0),
        Output::Close { socket, code, reason } => format!("close {} {code} {reason}", socket.0),
        Output::Answer(answer) => {
            let cancelled = if answer.cancelled { " cancelled" } else { "" };
            match &answer.result {
                Ok(result) => format!("answer {} ok {}{cancelled}", answer.call.0, result.json),
                Err(failure) => format!(
                    "answer {} {} {}{cancelled}",
                    answer.call.0,
                    failure.error_code(),
                    failure.effect().as_str()
                ),
            }
        }
        Output::Event(event) => {
            format!("event {} {}", event.what.as_str(), event.session_id.as_deref().unwrap_or("-"))
        }
        Output::ListChanged { view } => format!("changed {}", view.0),
        Output::Keep(_) | Output::Forget(_) => return None,
    })
}

/// The line of a frame that carries a call.
pub(super) fn sent(socket: u64, number: u64, random: u64, name: &str, arguments: &str) -> String {
    format!(
        r#"send {socket} {{"jsonrpc":"2.0","id":"mgr-{number}-{random:032x}","method":"tool.call","params":{{"name":"{name}","arguments":{arguments}}}}}"#
    )
}

pub(super) fn cancelled(socket: u64, number: u64, random: u64, reason: &str) -> String {
    let wire = format!("mgr-{number}-{random:032x}");
    format!(
        r#"send {socket} {{"jsonrpc":"2.0","id":"cancel-{wire}","method":"tool.cancel","params":{{"id":"{wire}","reason":"{reason}"}}}}"#
    )
}

pub(super) const OK: &str = r#"ok {"content":[],"isError":false}"#;
