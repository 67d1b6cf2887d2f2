//! A request is written once, whatever its server answers: the server's own record decides.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::gate::{Gate, Home};
use crate::upstream::read;

#[path = "once/connecting.rs"]
mod connecting;
#[path = "once/stdio.rs"]
mod stdio;

/// A tool and the answer to it: the HTTP status line, or nothing to hang up, and the body.
const ANSWERS: [(&str, &str, &str); 13] = [
    ("moved", "307 Temporary Redirect", ""),
    ("found", "302 Found", ""),
    ("bare400", "400 Bad Request", ""),
    ("token", "401 Unauthorized", ""),
    ("missing", "404 Not Found", ""),
    ("method", "405 Method Not Allowed", ""),
    ("error", "500 Internal Server Error", ""),
    (
        "code32000",
        "400 Bad Request",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"m"}}"#,
    ),
    (
        "code32001",
        "404 Not Found",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"m"}}"#,
    ),
    (
        "code32020",
        "400 Bad Request",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"m"}}"#,
    ),
    (
        "code32022",
        "400 Bad Request",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"m"}}"#,
    ),
    (
        "session",
        "400 Bad Request",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"No valid session"}}"#,
    ),
    ("hangup", "", ""),
];

/// A server that executes every call, and then answers as the table has it.
struct Executes {
    address: String,
    executed: Arc<Mutex<Vec<String>>>,
}

impl Executes {
    fn start(newer: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let executed = Arc::new(Mutex::new(Vec::new()));
        let (all, own) = (Arc::clone(&executed), address.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, all, own) = (stream.unwrap(), Arc::clone(&all), own.clone());
                thread::spawn(move || serve(&stream, &all, &own, newer));
            }
        });
        Self { address, executed }
    }

    fn executions(&self, tool: &str) -> usize {
        self.executed.lock().unwrap().iter().filter(|name| *name == tool).count()
    }
}

fn serve(stream: &TcpStream, executed: &Mutex<Vec<String>>, own: &str, newer: bool) {
    let mut reader = BufReader::new(stream);
    while let Some((head, body)) = read(&mut reader) {
        let message: Value = serde_json::from_str(&body).unwrap_or_default();
        let tool = message["params"]["name"].as_str().unwrap_or_default().to_owned();
        let is_call = message["method"] == "tools/call";
        if is_call {
            executed.lock().unwrap().push(tool.clone());
        }
        let planned = ANSWERS.iter().find(|(name, ..)| is_call && *name == tool);
        let (status, body) = match planned {
            Some((_, "", _)) => return,
            Some((_, status, body)) => ((*status).to_owned(), (*body).to_owned()),
            None => usual(&head, &message, newer),
        };
        let mut answer = String::new();
        write!(
            answer,
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nMcp-Session-Id: s\r\n\
             Location: http://{own}/mcp\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        if (&*stream).write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn usual(head: &str, message: &Value, newer: bool) -> (String, String) {
    if !head.starts_with("POST") {
        return ("405 Method Not Allowed".to_owned(), String::new());
    }
    let result = match message["method"].as_str() {
        Some("initialize") if !newer => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "executes", "version": "1"},
        }),
        Some("server/discover") if newer => json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
        }),
        Some("tools/list") => json!({"tools": [], "resultType": "complete"}),
        Some("tools/call") => json!({"content": [], "resultType": "complete"}),
        _ if message["id"].is_null() => return ("202 Accepted".to_owned(), String::new()),
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
            return ("200 OK".to_owned(), answer.to_string());
        }
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    ("200 OK".to_owned(), answer.to_string())
}

#[test]
fn what_a_server_has_executed_is_counted_and_never_written_again() {
    let mut policy = "version: '1'\ndefault: deny\ntools:\n".to_owned();
    for (tool, ..) in ANSWERS {
        writeln!(
            policy,
            "  {tool}: {{ action: allow, limits: [{{ counter: {tool}, max: 1, window: hour, scope: grant }}] }}"
        )
        .unwrap();
    }
    for newer in [false, true] {
        let server = Executes::start(newer);
        let home = Home::new();
        let file = home.path("policy.yaml");
        fs::write(&file, &policy).unwrap();
        let config = format!("servers: {{ web: {{ url: 'http://{}/mcp' }} }}", server.address);
        let gate = Gate::start_as(home, &config, |command| {
            command.arg("--policy").arg(file);
        });
        let agent = Agent::open(&gate, "web");
        for (tool, ..) in ANSWERS {
            // An error that came with status 400 passes with it.
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": tool, "arguments": {}}});
            let first = agent.send(&call.to_string()).body;
            assert!(!first.contains("Nothing was sent"), "{newer} {tool}: {first}");
            assert!(!first.contains("not_started"), "{newer} {tool}: {first}");
            let second = agent.call(tool, &json!({}));
            assert_eq!(second["_meta"]["error_code"], "rate_limited", "{newer} {tool}: {second}");
            assert_eq!(server.executions(tool), 1, "{newer} {tool}");
        }
    }
}

#[test]
fn the_first_call_to_a_server_that_hangs_fails_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let gate = Gate::start(&format!("servers: {{ web: {{ url: 'http://{address}/mcp' }} }}"));
    let agent = Agent::open_at(&gate, "/mcp", "2025-11-25").unwrap();
    let began = Instant::now();
    let result = agent.call("web__any", &json!({}));
    assert_eq!(result["_meta"]["error_code"], "upstream_unavailable", "{result}");
    assert!(began.elapsed() < Duration::from_secs(7), "{:?}", began.elapsed());
}
