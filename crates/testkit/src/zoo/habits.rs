//! What each animal says instead of the plain right answer, without I/O: from a message and its
//! right answer to bytes, a pace and perhaps a death.

use std::time::Duration;

use serde_json::{Value, json};

use super::Animal;
use super::answer::{Heard, text_of};

/// What an animal says to one message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Saying {
    pub(super) bytes: Vec<u8>,
    /// A pause before it says anything.
    pub(super) before: Duration,
    /// A pause after each byte; then bytes go out one by one.
    pub(super) drips: Option<Duration>,
    /// It dies of it.
    pub(super) dies: bool,
}

/// The text of answers that nobody may ever be given by another server than the one that lies.
pub const LIE: &str = "an animal's lie";

/// What the animal says to `heard`, to which `right` would be the answer.
pub(super) fn say(animal: Animal, amount: u64, heard: &Heard, right: Option<&Value>) -> Saying {
    let mut saying = Saying::default();
    let called = heard.asks("tools/call");
    let pause = Duration::from_millis(amount);
    match animal {
        Animal::Silent => {}
        Animal::CrashMidCall if called => saying.dies = true,
        Animal::CrashHalfAnswer if called => {
            saying.line(right);
            let half = saying.bytes.len() / 2;
            saying.bytes.truncate(half);
            saying.dies = true;
        }
        Animal::Slow => {
            saying.before = pause;
            saying.line(right);
        }
        Animal::Dripping => {
            saying.drips = Some(pause);
            saying.line(right);
        }
        Animal::Garbage => {
            saying.bytes.extend_from_slice(GARBAGE);
            saying.line(right);
            saying.bytes.extend_from_slice(GARBAGE);
        }
        Animal::WrongIds if called => {
            for id in strange_ids() {
                saying.line(Some(&text_of(&id, LIE)));
            }
            saying.line(right);
        }
        Animal::OtherIds if called => {
            for id in neighbours(heard) {
                saying.line(Some(&text_of(&id, LIE)));
            }
            saying.line(right);
        }
        Animal::Twice => {
            saying.line(right);
            if let (Some(id), Some(_)) = (&heard.id, right) {
                saying.line(Some(&text_of(id, LIE)));
            }
        }
        Animal::ListChangedStorm => {
            saying.line(right);
            saying.bytes.extend(storm(amount));
        }
        _ => saying.line(right),
    }
    saying
}

/// So many notifications that the list has changed.
pub(super) fn storm(amount: u64) -> Vec<u8> {
    let count = usize::try_from(amount).unwrap_or(usize::MAX);
    b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n".repeat(count)
}

impl Saying {
    fn line(&mut self, message: Option<&Value>) {
        if let Some(message) = message {
            self.bytes.extend_from_slice(message.to_string().as_bytes());
            self.bytes.push(b'\n');
        }
    }
}

/// Lines that are no messages, each wrong in its own way.
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

/// Ids that no client has used: none of them is a number that counts from one.
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

/// The ids around the one it was asked with: of others that wait, and of those still to come.
fn neighbours(heard: &Heard) -> Vec<Value> {
    let own = heard.id.as_ref().and_then(Value::as_u64);
    let Some(own) = own else { return Vec::new() };
    let around = own.saturating_sub(3)..=own.saturating_add(3);
    around.filter(|id| *id != own).map(Value::from).collect()
}
