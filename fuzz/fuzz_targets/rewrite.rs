//! Any message: parts that are replaced are the only ones that change; names, URIs and cursors come
//! back as they were.
//!
//! Lines of the input: a message, a result, a name, a cursor.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use toolgate_gateway::fuzz::{
    KINDS, name_there_and_back, read_cursor, rewritten, show_uris, uri_there_and_back, write_cursor,
};
use toolgate_json::peek;
use toolgate_mcp::{Incoming, Limits, Message, parse_server};

const NEW: &str = r#""new \" id""#;
const SERVERS: [&str; 3] = ["files", "1c", "a-1"];

fuzz_target!(|input: &str| {
    let mut lines = input.split('\n');
    let mut line = || lines.next().unwrap_or_default();
    let [message, result, name, cursor] = [line(), line(), line(), line()];
    check_message(message);
    for server in SERVERS {
        check_names(server, name);
        check_uris(server, result);
    }
    for kind in 0..KINDS {
        check_cursor(kind, cursor, name);
    }
});

/// Id and progress token are replaced as they are on the way to a server.
fn check_message(message: &str) {
    let Ok(Incoming::One(read)) = parse_server(message.as_bytes(), &Limits::default()) else {
        return;
    };
    let (raw, id, params) = match &read {
        Message::Request(request) => (request.raw, Some(request.id), request.params),
        Message::Notification(word) => (word.raw, None, word.params),
        Message::Response(response) => (response.raw, response.id, None),
    };
    let token = params.and_then(|params| peek(params, &["_meta", "progressToken"]).ok().flatten());
    let parts: Vec<_> = id.into_iter().chain(token).map(|part| (part, NEW)).collect();
    let new = rewritten(raw, &parts).expect("parts of the message");
    assert_eq!(rewritten(raw, &[]).as_deref(), Some(raw.as_bytes()));
    let Ok(mut expected) = serde_json::from_str::<Value>(raw) else { return };
    let word: Value = serde_json::from_str(NEW).unwrap();
    if id.is_some() {
        expected["id"] = word.clone();
    }
    if token.is_some() {
        expected["params"]["_meta"]["progressToken"] = word;
    }
    assert_eq!(serde_json::from_slice::<Value>(&new).unwrap(), expected);
    let again = parse_server(&new, &Limits::default());
    assert!(matches!(again, Ok(Incoming::One(_))), "{new:?}");
    if let (Message::Request(before), Ok(Incoming::One(Message::Request(after)))) = (read, again) {
        assert_eq!((after.method, after.id), (before.method, NEW));
    }
}

fn check_names(server: &str, own: &str) {
    for there in [name_there_and_back, uri_there_and_back] {
        let (shown, owner, back) = there(server, own);
        assert_eq!(back.as_deref(), Some(own), "{shown}");
        assert_eq!(owner.as_deref(), Some(server), "{shown}");
    }
}

/// The naive way to show URIs gives the same.
fn check_uris(server: &str, result: &str) {
    let (Some(shown), Ok(mut expected)) =
        (show_uris(result, server), serde_json::from_str::<Value>(result))
    else {
        return;
    };
    let show = |uri: Option<&mut Value>| {
        if let Some(Value::String(uri)) = uri {
            *uri = uri_there_and_back(server, uri).0;
        }
    };
    let block = |block: &mut Value| match block["type"].as_str() {
        Some("resource_link") => show(block.get_mut("uri")),
        Some("resource") => show(block.pointer_mut("/resource/uri")),
        _ => {}
    };
    let content = |content: &mut Value| match content {
        Value::Array(blocks) => {
            blocks.iter_mut().filter(|part| part.is_object()).for_each(block);
        }
        Value::Object(_) => block(content),
        _ => {}
    };
    if let Some(whole) = expected.get_mut("content") {
        content(whole);
    }
    for part in list(&mut expected, "contents") {
        show(part.get_mut("uri"));
    }
    for message in list(&mut expected, "messages") {
        if let Some(whole) = message.get_mut("content") {
            content(whole);
        }
    }
    // Of keys that occur twice a `Value` keeps one; what is ambiguous is shown as it came.
    let shown = serde_json::from_str::<Value>(&shown).expect("JSON");
    if serde_json::from_str::<Value>(result).unwrap().to_string().len() == compact(result) {
        assert_eq!(shown, expected, "{result}");
    }
}

fn list<'v>(result: &'v mut Value, key: &str) -> impl Iterator<Item = &'v mut Value> {
    result.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten()
}

/// How long the text is without white space between its parts; equal to the text of its value only
/// if no key occurs twice and nothing is written in another way.
fn compact(text: &str) -> usize {
    let (mut length, mut quoted, mut escaped) = (0, false, false);
    for byte in text.bytes() {
        if quoted || !b" \t\r\n".contains(&byte) {
            length += 1;
        }
        (quoted, escaped) = match byte {
            b'"' if !escaped => (!quoted, false),
            b'\\' if quoted => (true, !escaped),
            _ => (quoted, false),
        };
    }
    length
}

fn check_cursor(kind: usize, given: &str, server: &str) {
    if let Some((server, entry)) = read_cursor(kind, given) {
        let written = write_cursor(kind, &server, entry);
        assert_eq!(read_cursor(kind, &written), Some((server, entry)));
    }
    let written = write_cursor(kind, server, given.len());
    assert_eq!(read_cursor(kind, &written), Some((server.to_owned(), given.len())));
    for other in (0..KINDS).filter(|other| *other != kind) {
        assert_eq!(read_cursor(other, &written), None, "{written}");
    }
}
