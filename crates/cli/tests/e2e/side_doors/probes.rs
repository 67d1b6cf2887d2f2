//! Probes: messages that try to reach a server without being decided.
//!
//! Start at [`all`]. [`headers`] are those with which protocol 2026-07-28 would send one.

use std::collections::BTreeSet;

/// Methods of the protocol that need a permit.
const GUARDED: [&str; 13] = [
    "tools/call",
    "prompts/get",
    "resources/read",
    "resources/subscribe",
    "completion/complete",
    "tasks/get",
    "tasks/list",
    "tasks/result",
    "tasks/update",
    "tasks/cancel",
    "sampling/createMessage",
    "elicitation/create",
    "roots/list",
];

/// Methods that the protocol does not have.
const UNKNOWN: [&str; 10] = [
    "x/y",
    "rpc.discover",
    "tools/delete",
    "tasks/purge",
    "tools/call/",
    "tools",
    "call",
    "",
    "notification/x",
    "$/cancelRequest",
];

/// Methods that need no permit, as requests.
pub(super) const CLOSED: [&str; 10] = [
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "logging/setLevel",
    "resources/unsubscribe",
    "subscriptions/listen",
];

const NOTIFICATIONS: [&str; 8] = [
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/message",
    "notifications/roots/list_changed",
    "notifications/tasks/status",
    "notifications/tools/call",
    "notifications/x",
];

/// Methods whose `params` decide something.
const STRICT: [&str; 6] = [
    "tools/call",
    "resources/read",
    "resources/subscribe",
    "prompts/get",
    "completion/complete",
    "tasks/cancel",
];

/// Values of `params` that are not what methods expect; `M` is the place of `_meta`.
const PARAMS: [&str; 18] = [
    "[]",
    "null",
    "true",
    "1",
    "\"pid\"",
    "[{\"name\":\"pid\"}]",
    "{M}",
    r#"{"name":["pid"],M}"#,
    r#"{"name":{"pid":1},M}"#,
    r#"{"name":null,M}"#,
    r#"{"name":1,M}"#,
    r#"{"name":"pid","arguments":[],M}"#,
    r#"{"name":"pid","arguments":"{}",M}"#,
    r#"{"name":"pid","arguments":null,"task":{"ttl":1},M}"#,
    r#"{"name":"pid","arguments":{},"requestState":"s","inputResponses":{},M}"#,
    r#"{"name":"pid","Name":"pid","uri":["demo://a"],M}"#,
    r#"{"uri":{"a":"demo://a"},"taskId":["t"],"ref":[],M}"#,
    r#"{"name":"pid","name":"echo","uri":"demo://a","uri":"demo://b","taskId":"t","taskId":"u",M}"#,
];

/// A whole body; `M` is the place of `_meta`.
const ODD: [&str; 26] = [
    r#"{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/call","params":{"name":"pid",M}}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","method":"ping","params":{"name":"pid",M}}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":"ping","Method":"tools/call","params":{"name":"pid",M}}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":"ping","METHOD":"tools/call","params":{"name":"pid",M}}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":"ping","method ":"tools/call","params":{"name":"pid",M}}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":"ping","method\u0000":"tools/call","params":{"name":"pid",M}}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":"ping","\u006dethod":"tools/call","params":{"name":"pid",M}}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":"ping","ｍethod":"tools/call","params":{"name":"pid",M}}"#,
    r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"tools/call","params":{"name":"pid",M}}"#,
    r#"{"jsonrpc":"2.0","ID":7,"method":"tools/call","params":{"name":"pid",M}}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{M},"params":{"name":"pid"}}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"never",M},"Params":{"name":"pid"}}"#,
    r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"pid",M}}"#,
    r#"{"jsonrpc":"1.0","id":7,"method":"tools/call","params":{"name":"pid",M}}"#,
    r#"{"id":7,"method":"tools/call","params":{"name":"pid",M}}"#,
    r#"{"jsonrpc":"2.0","id":7,"result":{},"method":"tools/call","params":{"name":"pid",M}}"#,
    r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"m"},"method":"tools/call","params":{"name":"pid"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"name":"pid"}}"#,
    r#"{"jsonrpc":"2.0","id":"q-1","result":{"method":"tools/call","params":{"name":"pid"}}}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":["tools/call"],"params":{"name":"pid",M}}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":{"tools/call":1},"params":{"name":"pid",M}}"#,
    r#"{"jsonrpc":"2.0","id":[7],"method":"tools/call","params":{"name":"pid",M}}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":"notifications/cancelled","params":{"requestId":1,M}}"#,
    r#"[[{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"pid",M}}]]"#,
    r#"[{"jsonrpc":"2.0","id":7,"method":"ping"},{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"pid",M}}]"#,
    "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"pid\",M}}",
];

/// A probe and the method that it names, as it is written there.
pub(super) struct Probe {
    pub(super) method: String,
    pub(super) body: String,
}

/// All probes, each once. `meta` is the raw `_meta` of their `params`.
pub(super) fn all(meta: &str) -> Vec<Probe> {
    let mut found = Vec::new();
    let usual = r#"{"name":"pid","arguments":{},"uri":"demo://a","taskId":"t","ref":{"type":"ref/prompt","name":"p"},M}"#;
    for method in GUARDED.iter().chain(&UNKNOWN) {
        let (with, without) = (one(method, "\"id\":7,", usual), one(method, "", usual));
        let null = one(method, "\"id\":null,", usual);
        let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
        let batches = [
            format!("[{with}]"),
            format!("[{without}]"),
            format!("[{ping},{without}]"),
            format!("[{null},{ping}]"),
        ];
        found.extend([with, without, null].into_iter().chain(batches).map(|body| (*method, body)));
    }
    for method in CLOSED {
        for id in ["\"id\":7,", "", "\"id\":1.5,"] {
            found.push((method, one(method, id, "{M}")));
        }
    }
    for method in NOTIFICATIONS {
        for id in ["\"id\":7,", ""] {
            found.push((method, one(method, id, r#"{"name":"pid","requestId":1,M}"#)));
        }
    }
    for method in STRICT {
        for params in PARAMS {
            found.push((method, one(method, "\"id\":7,", params)));
        }
    }
    found.extend(ODD.map(|body| ("tools/call", body.to_owned())));
    let mut found: Vec<(String, String)> =
        found.into_iter().map(|(method, body)| (method.to_owned(), body)).collect();
    for method in ["tools/call", "resources/read", "tasks/cancel"] {
        for spelled in spellings(method) {
            found.extend(["\"id\":7,", ""].map(|id| (spelled.clone(), one(&spelled, id, usual))));
        }
    }
    let mut seen = BTreeSet::new();
    let found = found.into_iter().map(|(method, body)| {
        let body = body.replace(",M}", &format!(",\"_meta\":{meta}}}"));
        Probe { method, body: body.replace("{M}", &format!("{{\"_meta\":{meta}}}")) }
    });
    found.filter(|probe| seen.insert(probe.body.clone())).collect()
}

fn one(method: &str, id: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{params}}}"#)
}

/// Ways to write a method that some reader takes for it, as raw JSON.
fn spellings(method: &str) -> Vec<String> {
    let mut title = method.to_owned();
    title.get_mut(..1).unwrap().make_ascii_uppercase();
    let wide: String =
        method.chars().map(|c| if c.is_ascii_lowercase() { wide(c) } else { c }).collect();
    vec![
        method.to_uppercase(),
        title,
        format!(" {method}"),
        format!("{method} "),
        format!("{method}\\t"),
        format!("{method}\\n"),
        format!("{method}\\u0000"),
        format!("\\u0000{method}"),
        format!("{method}\\u0000x"),
        format!("{method}\u{200b}"),
        format!("\u{feff}{method}"),
        format!("{method}\u{202e}"),
        method.replace('/', "\u{ad}/"),
        method.replace('/', "／"),
        method.replace('/', "\\/"),
        method.replace('/', "//"),
        method.replace('/', "."),
        method.replace('s', "ſ"),
        method.replacen('t', "\\u0074", 1).replacen('r', "\\u0072", 1),
        wide,
        format!("./{method}"),
        format!("/{method}"),
        format!("notifications/{method}"),
        format!("notifications/../{method}"),
        format!("notifications/{method}\\u0000"),
        format!("Notifications/{method}"),
    ]
}

/// The fullwidth form of a small letter.
fn wide(letter: char) -> char {
    char::from_u32(u32::from(letter) - u32::from('a') + u32::from('ａ')).unwrap()
}

/// The headers that a request of protocol 2026-07-28 has.
pub(super) fn headers(method: &str) -> String {
    let subject = match method {
        "tools/call" | "prompts/get" => "Mcp-Name: pid\r\n",
        "resources/read" => "Mcp-Name: demo://a\r\n",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "Mcp-Name: t\r\n",
        _ => "",
    };
    format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {}\r\n{subject}", plain(method))
}

/// A method as it can be in a header: what is written as an escape stays one, but for letters.
fn plain(method: &str) -> String {
    method.replace("\\/", "/").replace("\\u0074", "t").replace("\\u0072", "r").trim().to_owned()
}
