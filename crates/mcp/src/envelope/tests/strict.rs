//! Messages that parsers may read differently are rejected.

use super::super::{Message, parse_agent};
use super::{agent, check_refused, check_strict};
use crate::{Limits, code};

#[test]
fn keys_of_the_envelope_occur_once() {
    for (extra, words) in [
        (r#""method":"ping""#, "the key `method` occurs twice; send it once (at byte 40)"),
        (r#""meth\u006fd":"x""#, "the key `method` occurs twice"),
        (r#""id":1"#, "the key `id` occurs twice"),
        (r#""jsonrpc":"2.0""#, "the key `jsonrpc` occurs twice"),
        (r#""x":1,"x":1"#, "the key `x` occurs twice; send it once (at byte 46)"),
        (r#""x":1,"y":1,"\u0078":1"#, "the key `x` occurs twice; send it once (at byte 52)"),
        (r#""params":{},"params":{}"#, "the key `params` occurs twice"),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping",{extra}}}"#);
        check_refused(&body, code::INVALID_REQUEST, words);
    }
}

#[test]
fn keys_of_the_envelope_are_not_imitated() {
    for key in [
        "Method",
        "METHOD",
        "Id",
        "ID",
        "JsonRpc",
        "Params",
        "paramſ",
        "Result",
        "Error",
        "ＩＤ",
        "ｍethod",
        "pa\u{ad}rams",
        "\\u0049d",
        "param\\u017f",
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","{key}":1}}"#);
        check_refused(&body, code::INVALID_REQUEST, " imitates `");
    }
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping","\udc00":1}"#;
    check_refused(body, code::INVALID_REQUEST, "half of a surrogate pair");
    for key in ["", "methods", "_id", "ид", "x\\ud83d\\ude00"] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","{key}":1}}"#);
        agent(&body).expect(key);
    }
}

/// What makes the params of a call ambiguous; `@` is an offset in these params.
const AMBIGUOUS: [(&str, &str); 17] = [
    (r#"{"name":"a","name":"b"}"#, "the key `name` occurs twice; send it once (at byte @12)"),
    (r#"{"name":"a","na\u006de":"b"}"#, "the key `name` occurs twice"),
    (r#"{"name":"a","arguments":{"x":1,"x":1}}"#, "the key `x` occurs twice"),
    (r#"{"arguments":{"a":[[{"x":{}},{"\u0078":[],"x":1}]]}}"#, "the key `x` occurs twice"),
    (r#"{"_meta":{"":1,"":1}}"#, "the key `` occurs twice"),
    (r#"{"other":[{"k":{"z":1,"y":{},"z":2}}]}"#, "the key `z` occurs twice"),
    (r#"[{"a":1,"a":1}]"#, "the key `a` occurs twice"),
    (r#"{"name":"\ud800"}"#, "half of a surrogate pair"),
    (r#"{"name":"\udc00\ud800"}"#, "half of a surrogate pair"),
    (r#"{"arguments":{"a":["\\\uDBFF"]}}"#, "half of a surrogate pair"),
    (r#"{"name":"\ud800\n"}"#, "half of a surrogate pair"),
    (r#"{"arguments":{"\ud83dx":1}}"#, "half of a surrogate pair"),
    (r#"{"Name":"a"}"#, "the key `Name` imitates `name`; spell it `name` (at byte @1)"),
    (r#"{"name":"a","ARGUMENTS":{}}"#, "imitates `arguments`"),
    (r#"{"nａme":"a"}"#, "imitates `name`"),
    (r#"{"name":"a","requeststate":"x"}"#, "imitates `requestState`"),
    (r#"{"URI":"x","inputresponses":{}}"#, "imitates `uri`"),
];

#[test]
fn ambiguous_params_of_what_can_act_are_refused() {
    for method in ["tools/call", "prompts/get", "tools\\/call", "resources/read"] {
        for (params, words) in AMBIGUOUS {
            let head = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":"#);
            let body = format!("{head}{params}}}");
            let words = match words.split_once('@') {
                Some((words, at)) => {
                    let at: usize = at.trim_end_matches(')').parse().unwrap();
                    format!("{words}{})", head.len() + at)
                }
                None => words.to_owned(),
            };
            check_strict(&body, code::INVALID_PARAMS, &words);
            assert_eq!(agent(&body).unwrap_err().id.as_deref(), Some("1"));
        }
    }
}

#[test]
fn params_of_other_methods_pass_untouched() {
    for (params, _) in AMBIGUOUS {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x/y","params":{params}}}"#);
        let Ok(Message::Request(request)) = agent(&body) else { panic!("{body}") };
        assert_eq!(request.params, Some(params));
    }
}

#[test]
fn any_key_may_stand_in_arguments() {
    for params in [
        r#"{"name":"a","arguments":{"Name":1,"NAME":2,"name":3,"paramſ":4,"ID":5}}"#,
        r#"{"name":"a","arguments":{"x":{"a":1},"y":{"a":1},"z":[{"a":1},{"a":1}],"a":1}}"#,
        r#"{"name":"\ud83d\ude00\\ud800 \"{[","arguments":{"}":"]","\\":"\"","\"":","}}"#,
        r#"{"name":"a","_meta":{"Name":1},"arguments":{"n":[1,1.0,1e0,1e400,-0]},"extra":null}"#,
        "{}",
        "[]",
        r#"["name","name",{"Name":1}]"#,
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let Ok(Message::Request(request)) = agent(&body) else { panic!("{body}") };
        assert_eq!(request.params, Some(params));
    }
}

#[test]
fn members_beside_the_params_of_a_call_are_strict_too() {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","x":{"a":1,"a":2}}"#;
    check_strict(body, code::INVALID_REQUEST, "the key `a` occurs twice");
    agent(&body.replace("tools/call", "x/y")).unwrap();
}

#[test]
fn params_that_decide_something_are_read_strictly_whatever_the_method() {
    let cases: &[(&str, &[&str])] = &[
        ("resources/subscribe", &[r#"{"uri":"a","uri":"b"}"#, r#"{"uri":"a","URI":"b"}"#]),
        ("resources/unsubscribe", &[r#"{"Uri":"a"}"#, r#"{"uri":"a","\u0075ri":"b"}"#]),
        (
            "completion/complete",
            &[
                r#"{"ref":{"name":"a","name":"b"}}"#,
                r#"{"ref":{"name":"a"},"Ref":{}}"#,
                r#"{"ref":{"type":"ref/prompt","name":"a","NAME":"b"}}"#,
                r#"{"ref":{"name":"a","Uri":"b"}}"#,
                r#"{"ref":{"name":"a"},"argument":{"name":"x","value":"\ud800"}}"#,
            ],
        ),
        ("tasks/get", &[r#"{"taskId":"a","taskId":"b"}"#, r#"{"taskId":"a","taskid":"b"}"#]),
        ("tasks/result", &[r#"{"TaskId":"a"}"#]),
        ("tasks/cancel", &[r#"{"taskId":"a","ta\u017fkId":"b"}"#]),
        ("tasks/update", &[r#"{"taskId":"a","inputResponses":{"k":1,"k":2}}"#]),
        ("tasks/list", &[r#"{"cursor":"a","Cursor":"b"}"#]),
        ("tools/list", &[r#"{"cursor":"a","cursor":"b"}"#]),
        ("logging/setLevel", &[r#"{"level":"info","Level":"debug"}"#]),
        (
            "subscriptions/listen",
            &[r#"{"notifications":{"x":1,"x":2}}"#, r#"{"Notifications":{}}"#],
        ),
    ];
    for (method, all) in cases {
        for params in *all {
            let body =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            let refusal = agent(&body).unwrap_err();
            assert_eq!(refusal.code, code::INVALID_PARAMS, "{body}: {}", refusal.message);
        }
    }
}

#[test]
fn methods_that_can_act_are_not_imitated() {
    for method in ["Tools/Call", "TOOLS/CALL", "toolſ/call", "prompts/Get", "resources／read"] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
        check_strict(&body, code::METHOD_NOT_FOUND, " imitates `");
    }
    for method in ["Tools/List", "PING", "Tasks/cancel", "Resources/Subscribe"] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
        check_strict(&body, code::METHOD_NOT_FOUND, " imitates `");
    }
    for method in ["tools/call\\u0000", "tools/call\\u0000x", "x/../tools/call", "./ping"] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
        assert_eq!(agent(&body).unwrap_err().code, code::METHOD_NOT_FOUND, "{body}");
    }
    for method in ["Cancelled", "Tasks", "tasks\\u200b", "tasks/Status"] {
        let body = format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}"}}"#);
        assert_eq!(agent(&body).unwrap_err().code, code::METHOD_NOT_FOUND, "{body}");
    }
    agent(r#"{"jsonrpc":"2.0","method":"notifications/tasks"}"#).unwrap();
    for method in ["tools/delete", "x/y", "tools", "tools/calls", "инструменты/список"]
    {
        agent(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#)).unwrap();
    }
}

#[test]
fn a_request_needs_an_id_and_a_notification_has_none() {
    for body in [
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a"}}"#,
        r#"{"jsonrpc":"2.0","method":"Tools/Call"}"#,
        r#"{"jsonrpc":"2.0","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","method":"x/y"}"#,
        r#"{"jsonrpc":"2.0","method":""}"#,
        r#"{"jsonrpc":"2.0","method":"notifications"}"#,
        r#"{"jsonrpc":"2.0","method":"Notifications/x"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"tools/call"}"#,
    ] {
        assert_eq!(agent(body).unwrap_err().code, code::INVALID_REQUEST, "{body}");
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        for batch in [format!("[{body}]"), format!("[{ping},{body}]"), format!("[{body},{ping}]")] {
            let refusal = parse_agent(batch.as_bytes(), &Limits::default()).unwrap_err();
            assert_eq!(refusal.code, code::INVALID_REQUEST, "{batch}");
        }
    }
    for body in [
        r#"{"jsonrpc":"2.0","id":1,"method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"notifications/x"}"#,
    ] {
        assert_eq!(agent(body).unwrap_err().code, code::INVALID_REQUEST, "{body}");
    }
    for method in ["notifications/x", "notifications/tools/call", "notifications\\/x"] {
        agent(&format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#)).unwrap();
    }
}

#[test]
fn keys_of_the_protocol_have_no_control_characters() {
    for body in [
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","method\u0000":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","x\u0001":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","method\u0000x":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name\u0000":"b"}}"#,
    ] {
        agent(body).unwrap_err();
    }
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x\u0000":1}}}"#;
    agent(body).unwrap();
}
