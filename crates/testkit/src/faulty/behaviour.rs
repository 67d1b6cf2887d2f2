//! Applies the fault of a server, without I/O: from a message and its correct answer to bytes, a
//! pace and possibly an exit.

use std::time::Duration;

use serde_json::{Value, json};

use super::FaultyServer;
use super::answer::{ClientMessage, text_of};

/// The reply of a server to one message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) bytes: Vec<u8>,
    /// A pause before the reply.
    pub(super) before: Duration,
    /// A pause after each byte; then bytes are sent one by one.
    pub(super) drips: Option<Duration>,
    /// Whether the server exits after it.
    pub(super) dies: bool,
}

/// The text of false answers; only clients of the faulty server may receive it.
pub const FALSE_ANSWER: &str = "a false answer";

/// The reply to `message`, whose correct answer is `right`.
pub(super) fn say(
    server: FaultyServer,
    amount: u64,
    message: &ClientMessage,
    right: Option<&Value>,
) -> Reply {
    let mut reply = Reply::default();
    let called = message.asks("tools/call");
    let pause = Duration::from_millis(amount);
    match server {
        FaultyServer::Silent => {}
        FaultyServer::CrashMidCall if called => reply.dies = true,
        FaultyServer::CrashHalfAnswer if called => {
            reply.line(right);
            let half = reply.bytes.len() / 2;
            reply.bytes.truncate(half);
            reply.dies = true;
        }
        FaultyServer::Slow => {
            reply.before = pause;
            reply.line(right);
        }
        FaultyServer::Dripping => {
            reply.drips = Some(pause);
            reply.line(right);
        }
        FaultyServer::Garbage => {
            reply.bytes.extend_from_slice(GARBAGE);
            reply.line(right);
            reply.bytes.extend_from_slice(GARBAGE);
        }
        FaultyServer::WrongIds if called => {
            for id in strange_ids() {
                reply.line(Some(&text_of(&id, FALSE_ANSWER)));
            }
            reply.line(right);
        }
        FaultyServer::OtherIds if called => {
            for id in neighbours(message) {
                reply.line(Some(&text_of(&id, FALSE_ANSWER)));
            }
            reply.line(right);
        }
        FaultyServer::Twice => {
            reply.line(right);
            if let (Some(id), Some(_)) = (&message.id, right) {
                reply.line(Some(&text_of(id, FALSE_ANSWER)));
            }
        }
        FaultyServer::ListChangedStorm => {
            reply.line(right);
            reply.bytes.extend(storm(amount));
        }
        _ => reply.line(right),
    }
    reply
}

/// This many list_changed notifications.
pub(super) fn storm(amount: u64) -> Vec<u8> {
    let count = usize::try_from(amount).unwrap_or(usize::MAX);
    b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n".repeat(count)
}

impl Reply {
    fn line(&mut self, message: Option<&Value>) {
        if let Some(message) = message {
            self.bytes.extend_from_slice(message.to_string().as_bytes());
            self.bytes.push(b'\n');
        }
    }
}

/// Lines that are not valid messages, each for another reason.
const GARBAGE: &[u8] = b"Listening on stdio\n\
    \n\
    {\"jsonrpc\":\"2.0\",\"id\":\n\
    {}\n\
    []\n\
    [[[[[[[[\n\
    {\"jsonrpc\":\"2.0\",\"result\":{}}\n\
    \xff\xfe\x00\x01 no text at all \xc3\x28\n\
    {\"jsonrpc\":\"2.0\",\"method\":7}\n\
    null\n";

/// Ids that no client has used: none of them is a small positive number.
fn strange_ids() -> Vec<Value> {
    vec![
        json!(u64::MAX),
        json!(1_u64 << 40),
        json!(-1),
        json!(1.5),
        json!("1"),
        json!("no id"),
        Value::Null,
    ]
}

/// The ids around the requested one: of pending and of later requests.
fn neighbours(message: &ClientMessage) -> Vec<Value> {
    let own = message.id.as_ref().and_then(Value::as_u64);
    let Some(own) = own else { return Vec::new() };
    let around = own.saturating_sub(3)..=own.saturating_add(3);
    around.filter(|id| *id != own).map(Value::from).collect()
}
