//! Random messages: methods, ids and params that are often not quite as they should be.
//!
//! Start at [`body`].

use toolgate_dice::Dice;
use toolgate_mcp::method;

const UNKNOWN: [&str; 10] = [
    "x/y",
    "tools/delete",
    "tasks/purge",
    "rpc.discover",
    "",
    "tools",
    "tools/call/",
    "call",
    "notifications/x",
    "notifications/tools/call",
];
const IDS: [&str; 9] = ["1", "2", "7", "\"a\"", "\"1\"", "1.5", "null", "-1", "[]"];
const PARAMS: [&str; 22] = [
    "",
    "",
    "{}",
    "[]",
    "[\"x\"]",
    "null",
    r#"{"name":"x","arguments":{}}"#,
    r#"{"name":"files__x","arguments":{"a":1}}"#,
    r#"{"name":"x","task":{"ttl":1}}"#,
    r#"{"name":"x","requestState":"s","inputResponses":{}}"#,
    r#"{"name":"x ","Name":"x"}"#,
    r#"{"uri":"demo://a"}"#,
    r#"{"uri":"files+demo://a"}"#,
    r#"{"taskId":"t"}"#,
    r#"{"cursor":"c"}"#,
    r#"{"level":"debug"}"#,
    r#"{"notifications":{"toolsListChanged":true}}"#,
    r#"{"notifications":{"resourceSubscriptions":["demo://a"]}}"#,
    r#"{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":"b"}}"#,
    r#"{"ref":{"type":"ref/resource","uri":"demo://a"}}"#,
    r#"{"requestId":1,"progressToken":1,"progress":1}"#,
    r#"{"method":"tools/call","params":{"name":"x"},"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"0"}}"#,
];

/// A message or a batch of them.
pub(super) fn body(dice: &mut Dice) -> String {
    if !dice.one_in(6) {
        return message(dice);
    }
    let members: Vec<_> = (0..=dice.below(3)).map(|_| message(dice)).collect();
    format!("[{}]", members.join(","))
}

fn message(dice: &mut Dice) -> String {
    let mut members = vec![r#""jsonrpc":"2.0""#.to_owned()];
    if dice.one_in(8) {
        let kind = dice.pick(&["result", "error"]);
        members.push(format!("\"{kind}\":{}", dice.pick(&["{}", "{\"code\":1}", "null"])));
    }
    if members.len() == 1 || dice.one_in(3) {
        members.push(format!("\"method\":{}", name(dice)));
    }
    if !dice.one_in(4) {
        members.push(format!("\"id\":{}", dice.pick(&IDS)));
    }
    let params = dice.pick(&PARAMS);
    if !params.is_empty() {
        members.push(format!("\"params\":{params}"));
    }
    if dice.one_in(12) {
        let more = [
            r#""method":"tools/call""#,
            r#""Method":"tools/call""#,
            r#""method\u0000":"tools/call""#,
            r#""\u006dethod":"tools/call""#,
            r#""x":{"method":"tools/call"}"#,
            r#""id":3"#,
        ];
        members.push(dice.pick(&more).to_owned());
    }
    let first = dice.below(members.len());
    members.rotate_left(first);
    format!("{{{}}}", members.join(","))
}

/// A method name as raw JSON, often not quite as it should be.
fn name(dice: &mut Dice) -> String {
    let known = !dice.one_in(4);
    let name = if known { dice.pick(&method::KNOWN) } else { dice.pick(&UNKNOWN) };
    let spelled = match dice.below(16) {
        0 => name.to_uppercase(),
        1 => format!("{name} "),
        2 => format!(" {name}"),
        3 => format!("{name}\\u0000"),
        4 => format!("{name}\\u0000x"),
        5 => format!("{name}\u{200b}"),
        6 => name.replace('s', "ſ"),
        7 => name.replace('/', "\\/"),
        8 => name.replace('/', "／"),
        9 => name.replacen('t', "\\u0074", 1),
        10 => format!("notifications/{name}"),
        11 => format!("notifications/../{name}"),
        12 => format!("{name}{}", "x".repeat(300)),
        _ => name.to_owned(),
    };
    if dice.one_in(40) { format!("[\"{spelled}\"]") } else { format!("\"{spelled}\"") }
}
