//! Encodes and decodes frames as a 1C client does, with its limitations.

use serde_json::{Map, Value, json};

use super::{ClientOptions, tools};

/// A received frame.
#[derive(Debug, PartialEq)]
pub(crate) enum ReceivedFrame {
    /// A call.
    Call { id: String, name: String, arguments: Value },
    /// A call that is dropped silently.
    Unreadable,
    /// A cancellation.
    Cancel,
    /// A request to exit.
    Shutdown,
    /// A response: the error, if it is one.
    Answer(Option<Value>),
    /// Anything else.
    Other,
}

pub(crate) fn register(options: &ClientOptions, process: u32, tools: &Value) -> String {
    let mut params = Map::new();
    let mut say = |key: &str, value: Value| params.insert(key.to_owned(), value);
    say("client_uid", options.uid.as_str().into());
    say("kind", options.kind.as_str().into());
    say("version", "8.3.27.1508".into());
    say("infobase_name", options.base.as_str().into());
    say("ib_session_number", process.into());
    say("host_id", "fake-1c".into());
    say("tools", tools.clone());
    if let Some(id) = &options.config_id {
        say("config_id", id.as_str().into());
    }
    if options.profile != super::ClientProfile::Server {
        say("pid", process.into());
    }
    let params = Value::Object(params);
    request("register-1", "session.register", &params)
}

pub(crate) fn bye(request_form: bool) -> String {
    let params = json!({"reason": "closing"});
    if request_form {
        request("bye-1", "session.bye", &params)
    } else {
        notification("session.bye", &params)
    }
}

pub(crate) fn tools_changed(tools: &Value) -> String {
    notification("session.tools_changed", &json!({ "tools": tools }))
}

pub(crate) fn answer(id: &str, name: &str, arguments: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": tools::answer(name, arguments)}).to_string()
}

pub(crate) fn hear(text: &str) -> ReceivedFrame {
    let Ok(frame) = serde_json::from_str::<Value>(text) else { return ReceivedFrame::Other };
    let params = frame.get("params").unwrap_or(&Value::Null);
    match frame.get("method").and_then(Value::as_str) {
        Some("tool.call") => {
            let text = |value: Option<&Value>| {
                value.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
            };
            let (id, name) = (text(frame.get("id")), text(params.get("name")));
            let arguments = params.get("arguments").filter(|arguments| arguments.is_object());
            match (id, name, arguments) {
                (Some(id), Some(name), Some(arguments)) if readable(&frame) => {
                    ReceivedFrame::Call { id, name, arguments: arguments.clone() }
                }
                _ => ReceivedFrame::Unreadable,
            }
        }
        Some("tool.cancel") => ReceivedFrame::Cancel,
        Some("session.shutdown") => ReceivedFrame::Shutdown,
        Some(_) => ReceivedFrame::Other,
        None => ReceivedFrame::Answer(frame.get("error").cloned()),
    }
}

/// 1C parses objects into structures, whose keys must be identifiers.
fn readable(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            members.iter().all(|(key, value)| is_identifier(key) && readable(value))
        }
        Value::Array(items) => items.iter().all(readable),
        _ => true,
    }
}

fn is_identifier(key: &str) -> bool {
    let letter = |c: char| c == '_' || c.is_alphabetic();
    key.chars().next().is_some_and(letter) && key.chars().all(|c| letter(c) || c.is_ascii_digit())
}

fn request(id: &str, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

fn notification(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}
