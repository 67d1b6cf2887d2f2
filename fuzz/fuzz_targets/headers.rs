//! Any headers beside any request: what passes is what a naive reader finds in the body; headers
//! that toolgate writes itself pass; text survives the way through a header.
//!
//! Lines of the input: `MCP-Protocol-Version`, `Mcp-Method`, `Mcp-Name` (an empty line is a header
//! that is missing), the request, a tool as it is listed, the arguments of a call to it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use toolgate_mcp::sessionless::annotations::{Annotation, PREFIX, of_tool};
use toolgate_mcp::sessionless::{
    About, Heads, VERSION, described, header_text, header_value, heads_of, judge, without_claims,
};
use toolgate_mcp::{Incoming, Limits, Message, Request, method, parse_agent};

fuzz_target!(|input: &str| {
    let mut lines = input.split('\n');
    let mut line = || lines.next().unwrap_or_default();
    let [version, name_of_method, name] = [line(), line(), line()];
    let (body, tool, arguments) = (line(), line(), line());
    for text in [version, name_of_method, name, tool] {
        check_text(text);
    }
    let present = |text| Some(text).filter(|text: &&str| !text.is_empty());
    let heads =
        Heads { version: present(version), method: present(name_of_method), name: present(name) };
    if let Some(request) = request(body) {
        check_judged(&heads, &request);
        check_own_headers(&request);
    }
    if let Some(annotations) = of_tool(tool) {
        check_same_annotations(tool, &annotations);
        check_arguments(&annotations, arguments, name);
    }
});

fn request(body: &str) -> Option<Request<'_>> {
    match parse_agent(body.as_bytes(), &Limits::default()) {
        Ok(Incoming::One(Message::Request(request))) => Some(request),
        _ => None,
    }
}

/// The text that a header value means, by RFC 4648 and nothing else.
fn naive(value: &str) -> Option<String> {
    let value = value.trim_matches([' ', '\t']);
    let Some(encoded) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="))
    else {
        return Some(value.to_owned());
    };
    let digits = encoded.trim_end_matches('=');
    if encoded.len() % 4 != 0 || encoded.len() - digits.len() > 2 {
        return None;
    }
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0_u32, 0);
    for digit in digits.bytes() {
        const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let value = ALPHABET.iter().position(|known| *known == digit)?;
        (bits, held) = (bits << 6 | u32::try_from(value).unwrap(), held + 6);
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from(bits >> held & 0xff).unwrap());
            bits &= (1 << held) - 1;
        }
    }
    (bits == 0).then(|| String::from_utf8(bytes).ok())?
}

fn check_text(text: &str) {
    let value = header_value(text);
    assert!(value.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{value}");
    assert_eq!(value.trim_matches([' ', '\t']), value, "HTTP would cut it");
    assert_eq!(header_text(&value).as_deref(), Some(text));
    let trimmed = text.trim_matches([' ', '\t']);
    assert_eq!(header_text(trimmed).map(|text| text.into_owned()), naive(text));
}

/// What passes is described alike by its headers and its body.
fn check_judged(heads: &Heads<'_>, request: &Request<'_>) {
    let Ok(claims) = judge(heads, request) else { return };
    let said = |head: Option<&str>| naive(head.expect("a header that was judged"));
    let params: Value = serde_json::from_str(request.params.unwrap_or("{}")).unwrap();
    let meta = |key: &str| params["_meta"][format!("io.modelcontextprotocol/{key}")].clone();
    assert_eq!(said(heads.version).as_deref(), Some(VERSION));
    assert_eq!(meta("protocolVersion"), VERSION);
    assert_eq!(said(heads.method).as_deref(), Some(&*request.method));
    let subject = match &*request.method {
        "tools/call" | "prompts/get" => &params["name"],
        "resources/read" => &params["uri"],
        "tasks/get" | "tasks/update" | "tasks/cancel" => &params["taskId"],
        _ => &Value::Null,
    };
    if let Some(subject) = subject.as_str() {
        assert_eq!(said(heads.name).as_deref(), Some(subject));
    }
    let capabilities: Value = serde_json::from_str(claims.capabilities).unwrap();
    assert_eq!(capabilities, meta("clientCapabilities"));
}

/// A request that toolgate describes passes with the headers that toolgate writes for it.
fn check_own_headers(request: &Request<'_>) {
    let about = About { capabilities: "{}", client_info: Some(r#"{"name":"x"}"#), log_level: None };
    let Ok(written) = described(request.raw, &about) else { return };
    let written = std::str::from_utf8(&written).unwrap();
    let before: Value = serde_json::from_str(request.raw).unwrap();
    if before["params"]["_meta"].get("io.modelcontextprotocol/protocolVersion").is_none()
        && before.get("params").is_none_or(Value::is_object)
        && !method::REMOVED.contains(&&*request.method)
    {
        let heads = heads_of(written);
        let find = |name: &str| {
            heads.iter().find(|(head, _)| head == name).map(|(_, value)| value.as_str())
        };
        let heads = Heads {
            version: find("mcp-protocol-version"),
            method: find("mcp-method"),
            name: find("mcp-name"),
        };
        let again = self::request(written).unwrap_or_else(|| panic!("refused: {written}"));
        judge(&heads, &again).unwrap_or_else(|objection| panic!("{objection:?}: {written}"));
    }
    if let Ok(Some(older)) = without_claims(written) {
        let older: Value = serde_json::from_slice(&older).unwrap();
        let (mut older, mut before) = (older, before);
        for message in [&mut older, &mut before] {
            drop_claims(message);
        }
        assert_eq!(older, before, "{written}");
    }
}

/// Takes away what a request says of itself, and what that leaves empty.
fn drop_claims(message: &mut Value) {
    let Some(params) = message.get_mut("params").and_then(Value::as_object_mut) else { return };
    match params.get_mut("_meta") {
        Some(Value::Object(meta)) => {
            for key in ["protocolVersion", "clientCapabilities", "clientInfo", "logLevel"] {
                meta.remove(&format!("io.modelcontextprotocol/{key}"));
            }
            if meta.is_empty() {
                params.remove("_meta");
            }
        }
        Some(_) => drop(params.remove("_meta")),
        None => {}
    }
    if params.is_empty() {
        message.as_object_mut().unwrap().remove("params");
    }
}

/// How a tool is spelled says nothing of its annotations.
fn check_same_annotations(tool: &str, annotations: &[Annotation]) {
    let Ok(value) = serde_json::from_str::<Value>(tool) else { return };
    let sorted = |annotations: &[Annotation]| {
        let mut all: Vec<_> =
            annotations.iter().map(|one| (one.header.clone(), one.path.clone())).collect();
        all.sort();
        all
    };
    let plain = of_tool(&value.to_string()).unwrap_or_else(|| panic!("only so: {tool}"));
    assert_eq!(sorted(&plain), sorted(annotations), "{tool}");
}

/// Headers made from arguments agree with them; a missing or another one does not.
fn check_arguments(annotations: &[Annotation], arguments: &str, other: &str) {
    let Some(call) = call_of(arguments) else { return };
    let Some(arguments) = request(&call)
        .and_then(|request| toolgate_json::peek(request.params?, &["arguments"]).ok().flatten())
    else {
        return;
    };
    for one in annotations {
        let Some((name, value)) = one.head(arguments) else {
            assert_eq!(one.check(arguments, |_| None), Ok(()));
            assert!(one.check(arguments, |_| Some("x")).is_err());
            continue;
        };
        assert_eq!(name, format!("{PREFIX}{}", one.header));
        assert_eq!(one.check(arguments, |_| Some(&value)), Ok(()), "{arguments}");
        assert!(one.check(arguments, |_| None).is_err(), "{arguments}");
        let said = naive(other);
        let is_number = |text: &str| text.trim_matches([' ', '\t']).parse::<i64>().is_ok();
        if said != naive(&value) && !said.is_some_and(|said| is_number(&said)) {
            assert!(one.check(arguments, |_| Some(other)).is_err(), "{arguments} {other}");
        }
    }
}

/// A call whose arguments were accepted, because only those are ever compared.
fn call_of(arguments: &str) -> Option<String> {
    let arguments = arguments.trim();
    arguments.starts_with('{').then(|| {
        let head = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t""#;
        format!(r#"{head},"arguments":{arguments}}}}}"#)
    })
}
