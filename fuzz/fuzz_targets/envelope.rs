//! Any body: no panic; what is let in is what the naive reader lets in; an edit changes only its part.
//!
//! The first byte of the input chooses the depth limit, the rest is the body.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolgate_json::{Edit, items, peek};
use toolgate_mcp::{Incoming, Limits, Message, Payload, Refusal, code, parse_agent, parse_server};

#[path = "../../crates/mcp/tests/reference/json.rs"]
mod reference;

fuzz_target!(|input: &[u8]| {
    let Some((depth, body)) = input.split_first() else { return };
    let limits = Limits { depth: usize::from(depth % 65), batch: 5 };
    let agent = parse_agent(body, &limits);
    let server = parse_server(body, &limits);
    check_syntax(body, &agent);
    check_syntax(body, &server);
    for message in messages(&server) {
        check_edit(message);
    }
    for message in messages(&agent) {
        check_edit(message);
    }
    if let Ok(text) = std::str::from_utf8(body) {
        check_gate(text, &agent, limits.depth);
        if let (Ok(Incoming::One(ours)), Ok(Incoming::One(theirs))) = (&agent, &server) {
            assert_eq!(ours, theirs, "the strict reader reads the same");
        }
        assert!(agent.is_err() || server.is_ok(), "the strict reader is the stricter one");
    }
});

fn messages<'m, 'a>(
    read: &'m Result<Incoming<'a>, Refusal>,
) -> impl Iterator<Item = &'m Message<'a>> {
    let (one, batch) = match read {
        Ok(Incoming::One(message)) => (Some(message), &[][..]),
        Ok(Incoming::Batch(batch)) => (None, &batch[..]),
        Err(_) => (None, &[][..]),
    };
    one.into_iter().chain(batch.iter().flatten())
}

/// A parse error is given to bodies that are not JSON, and to no others.
fn check_syntax(body: &[u8], read: &Result<Incoming<'_>, Refusal>) {
    let json = std::str::from_utf8(body).is_ok_and(|text| reference::parse(text).is_some());
    match read {
        Ok(_) => assert!(json),
        // Reading a batch ends where it becomes too long.
        Err(refusal) if refusal.message.contains("a batch may hold") => {}
        Err(refusal) => assert_eq!(json, refusal.code != code::PARSE_ERROR, "{refusal}"),
    }
}

/// The gate and the naive reader agree. They know different look-alikes, so where a text is not
/// ASCII only this holds: what the naive reader refuses is refused.
fn check_gate(text: &str, agent: &Result<Incoming<'_>, Refusal>, depth: usize) {
    let Some(tree) = reference::parse(text) else { return };
    match agent {
        Ok(Incoming::One(_)) => assert!(reference::accepts(&tree, depth), "let in: {text}"),
        Ok(Incoming::Batch(batch)) => {
            let reference::Json::Array(elements) = tree else { panic!("not an array: {text}") };
            assert_eq!(elements.len(), batch.len());
            for (element, read) in elements.iter().zip(batch) {
                let accepts = reference::accepts(element, depth.saturating_sub(1));
                check_one(text, accepts, read.as_ref().err());
            }
        }
        Err(refusal) => {
            let single = !matches!(tree, reference::Json::Array(_));
            if single {
                check_one(text, reference::accepts(&tree, depth), Some(refusal));
            }
        }
    }
}

fn check_one(text: &str, accepts: bool, refusal: Option<&Refusal>) {
    match refusal {
        None => assert!(accepts, "let in: {text}"),
        Some(refusal) if refusal.message.contains(" imitates ") => {}
        Some(refusal) => assert!(!accepts, "refused: {text}: {refusal}"),
    }
}

fn check_edit(message: &Message<'_>) {
    let (raw, id, value) = match message {
        Message::Request(request) => (request.raw, Some(request.id), request.params),
        Message::Notification(notification) => (notification.raw, None, notification.params),
        Message::Response(response) => match response.payload {
            Payload::Result(value) | Payload::Error(value) => {
                (response.raw, response.id, Some(value))
            }
        },
    };
    let mut edit = Edit::new(raw);
    let mut parts: Vec<&str> = id.into_iter().collect();
    match value {
        Some(value) => match peek(value, &["name"]) {
            Ok(Some(name)) => parts.push(name),
            _ => parts.extend(items(value).ok().flatten().unwrap_or_default()),
        },
        None => {}
    }
    // The naive way: from the back to the front, so that offsets in front stay true.
    let mut expected = raw.to_owned();
    parts.sort_by_key(|part| part.as_ptr());
    for part in parts.iter().rev() {
        let start = part.as_ptr().addr() - raw.as_ptr().addr();
        expected.replace_range(start..start + part.len(), "\"new\"");
    }
    for part in parts {
        edit = edit.replace(part, "\"new\"").unwrap();
    }
    assert_eq!(edit.finish(), expected);
}
