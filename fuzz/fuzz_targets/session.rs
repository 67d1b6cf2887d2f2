//! Any frames and any arguments: no panic, what goes out is JSON, what is forwarded is an object.
//!
//! Each line of the input is a frame, by turns on two sockets, and the arguments of a call.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;
use toolgate_session::{
    CallArguments, CallNumber, Input, Millis, Output, Reach, SessionCall, SessionMachine,
    SessionSettings, SocketId, SocketToken, ViewId,
};

const LINES: usize = 64;

fuzz_target!(|input: &str| {
    let mut gate = SessionMachine::new(SessionSettings::default(), [], Millis(0));
    let reach = Arc::new(Reach::default());
    gate.handle(Input::Watch { view: ViewId(1), reach: Arc::clone(&reach) }, Millis(0));
    for socket in [SocketId(0), SocketId(1)] {
        gate.handle(Input::Opened { socket, token: Arc::new(SocketToken::default()), peer: None }, Millis(0));
    }
    for (n, line) in (0..).zip(input.lines().take(LINES)) {
        let now = Millis(n * 500);
        let outputs = gate.handle(Input::Frame { socket: SocketId(n % 2), text: line }, now);
        check(&outputs.list);
        for name in ["find", "execute_query"] {
            if let Ok(target) = gate.resolve(name, &CallArguments::read(Some(line)), &reach)
                && target.check_keys(line).is_ok()
            {
                assert!(target.arguments.starts_with('{') && is_json(&target.arguments));
                let call = SessionCall { call: CallNumber(n), target, random: 0 };
                check(&gate.handle(Input::Call(call), now).list);
            }
        }
    }
    for tool in gate.published(&reach).tools {
        assert!(is_json(&tool.json), "{}", tool.json);
    }
});

fn check(outputs: &[Output]) {
    for output in outputs {
        match output {
            Output::Send { frame, .. } => assert!(is_json(std::str::from_utf8(frame).unwrap())),
            Output::Answer(answer) => {
                if let Ok(result) = &answer.result {
                    assert!(is_json(&result.json), "{}", result.json);
                }
            }
            _ => {}
        }
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}
