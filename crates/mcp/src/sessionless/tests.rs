use super::*;
use crate::{Incoming, Limits, Message, parse_agent};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"x":1.0}}"#;

fn request(raw: &str) -> Request<'_> {
    match parse_agent(raw.as_bytes(), &Limits::default()) {
        Ok(Incoming::One(Message::Request(request))) => request,
        other => panic!("not a request: {other:?}"),
    }
}

fn message(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{params}}}}}"#)
}

#[test]
fn headers_and_body_must_agree() {
    let call = format!(r#"{META},"name":"t","arguments":{{}}"#);
    let accented = format!(r#"{META},"name":"né","arguments":{{}}"#);
    let read = format!(r#"{META},"uri":"a:b""#);
    let none: Option<&str> = None;
    let ok = Ok(());
    let differs = Err(code::HEADER_MISMATCH);
    let cases = [
        ("tools/list", META, Some(VERSION), Some("tools/list"), none, ok),
        ("tools/list", META, Some(VERSION), Some(" tools/list\t"), none, ok),
        ("tools/list", META, none, Some("tools/list"), none, differs),
        ("tools/list", META, Some("2025-11-25"), Some("tools/list"), none, differs),
        ("tools/list", META, Some(VERSION), none, none, differs),
        ("tools/list", META, Some(VERSION), Some("prompts/list"), none, differs),
        ("tools/list", META, Some(VERSION), Some("TOOLS/LIST"), none, differs),
        ("tools/call", &call, Some(VERSION), Some("tools/call"), Some("t"), ok),
        ("tools/call", &call, Some(VERSION), Some("tools/call"), Some("=?base64?dA==?="), ok),
        ("tools/call", &accented, Some(VERSION), Some("tools/call"), Some("=?base64?bsOp?="), ok),
        ("tools/call", &call, Some(VERSION), Some("tools/call"), Some("dA=="), differs),
        ("tools/call", &call, Some(VERSION), Some("tools/call"), Some("=?base64?dA?="), differs),
        ("tools/call", &call, Some(VERSION), Some("tools/call"), Some("T"), differs),
        ("tools/call", &call, Some(VERSION), Some("tools/call"), none, differs),
        ("prompts/get", &call, Some(VERSION), Some("prompts/get"), none, differs),
        ("resources/read", &read, Some(VERSION), Some("resources/read"), Some("a:b"), ok),
        ("resources/read", &read, Some(VERSION), Some("resources/read"), Some("a:c"), differs),
    ];
    for (method, params, version, said, name, expected) in cases {
        let raw = message(method, params);
        let judged = judge(&Heads { version, method: said, name }, &request(&raw));
        let judged = judged.map(drop).map_err(|objection| objection.code);
        assert_eq!(judged, expected, "{raw} {version:?} {said:?} {name:?}");
    }
}

#[test]
fn what_a_request_must_say_of_itself() {
    let invalid = code::INVALID_PARAMS;
    let cases = [
        ("tools/list", "", invalid),
        ("tools/list", r#""_meta":{}"#, invalid),
        ("tools/list", r#""_meta":7"#, invalid),
        (
            "tools/list",
            r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#,
            invalid,
        ),
        (
            "tools/list",
            r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":[]}"#,
            invalid,
        ),
        ("ping", META, code::METHOD_NOT_FOUND),
        ("initialize", META, code::METHOD_NOT_FOUND),
        ("logging/setLevel", META, code::METHOD_NOT_FOUND),
        ("resources/subscribe", META, code::METHOD_NOT_FOUND),
    ];
    for (method, params, expected) in cases {
        let raw = message(method, params);
        let heads = Heads { version: Some(VERSION), method: Some(method), name: None };
        let objection = judge(&heads, &request(&raw)).unwrap_err();
        assert_eq!(objection.code, expected, "{raw}");
    }
}

#[test]
fn the_answer_to_an_unknown_version_lists_supported_ones() {
    let raw = message("server/discover", &META.replace("2026-07-28", "v999"));
    let heads = Heads { version: Some("v999"), method: Some("server/discover"), name: None };
    let objection = judge(&heads, &request(&raw)).unwrap_err();
    assert_eq!(objection.code, code::UNSUPPORTED_VERSION);
    let data = objection.data.unwrap();
    assert_eq!(data, r#"{"supported":["2026-07-28"],"requested":"v999"}"#);
}

#[test]
fn which_protocol_a_message_speaks() {
    let meta = format!("{{{META}}}");
    let cases = [
        (None, None, false),
        (None, Some("{}"), false),
        (Some("2025-11-25"), Some("{}"), false),
        (Some("1999-01-01"), None, false),
        (Some(VERSION), None, true),
        (None, Some(meta.as_str()), true),
        (Some("2025-11-25"), Some(meta.as_str()), true),
    ];
    for (header, params, expected) in cases {
        assert_eq!(is_sessionless(header, params), expected, "{header:?} {params:?}");
    }
}

#[test]
fn older_servers_see_a_request_of_their_own() {
    let params = format!(
        r#""name":"t", "x":1.0,{}"#,
        META.replace(r#""_meta":{"#, r#""_meta":{"k":1e5,"progressToken":"p","#)
    );
    let raw = message("tools/call", &params);
    let expected = raw.replace(META, r#""_meta":{"k":1e5,"progressToken":"p"}"#);
    let stripped = without_claims(&raw).unwrap().unwrap();
    assert!(stripped.starts_with(expected.split("\"_meta\"").next().unwrap().as_bytes()));
    assert!(stripped.ends_with(br#""_meta":{"k":1e5,"progressToken":"p"}}}"#), "{stripped:?}");
    let plain = r#"{"jsonrpc":"2.0","id":7,"method":"x"}"#;
    assert_eq!(without_claims(plain).unwrap(), None);
}

#[test]
fn base64_is_read_strictly() {
    let cases = [
        ("", Some("")),
        ("SGVsbG8=", Some("Hello")),
        ("SGVsbG8", None),
        ("SGVsbG9=", None),
        ("SGVs!G8=", None),
        ("SG=sbG8=", None),
        ("====", None),
        ("/w==", None),
        ("bsOp", Some("né")),
    ];
    for (encoded, expected) in cases {
        let value = format!("=?base64?{encoded}?=");
        assert_eq!(header_text(&value).as_deref(), expected, "{encoded}");
    }
    for literal in ["Hello", "=?base64?SGVsbG8=", "SGVsbG8=?=", "=?BASE64?SGVsbG8=?="] {
        assert_eq!(header_text(literal).as_deref(), Some(literal));
    }
}
