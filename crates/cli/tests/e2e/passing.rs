//! Large lists over HTTP: the agent has their beginning before the server has sent their end.

use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::json;

use crate::agent::Agent;
use crate::gate::{Gate, eventually};
use crate::upstream::read;
use crate::wire::Connection;

const TEXT: usize = 2 * 1024 * 1024;
const LIST: &str = r#"{"jsonrpc":"2.0","id":"mine","method":"prompts/list"}"#;

/// A server that sends half of a large list, and the other half on command.
struct Halves {
    address: String,
    /// Waits until a list takes it.
    rest: SyncSender<Rest>,
}

/// What comes of the other half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Comes,
    BreaksOff,
    IsNonsense,
}

fn halves() -> Halves {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (rest, reported) = sync_channel(0);
    let reported = Arc::new(Mutex::new(reported));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, reported) = (stream.unwrap(), Arc::clone(&reported));
            thread::spawn(move || {
                let mut reader = BufReader::new(&stream);
                while let Some((head, body)) = read(&mut reader) {
                    if !answer(&stream, &head, &body, &reported) {
                        return;
                    }
                }
            });
        }
    });
    Halves { address, rest }
}

/// False if the connection is to be closed.
fn answer(
    mut stream: &TcpStream,
    head: &str,
    body: &str,
    reported: &Mutex<Receiver<Rest>>,
) -> bool {
    let kind = "Content-Type: application/json\r\n";
    if !body.contains("\"id\"") {
        let status = if head.starts_with("POST") { "202 Accepted" } else { "405 No" };
        return write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").is_ok();
    }
    let asked: serde_json::Value = serde_json::from_str(body).unwrap();
    let answer = |result: serde_json::Value| {
        let id = &asked["id"];
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
    };
    if asked["method"] != "prompts/list" {
        let result = json!({
            "protocolVersion": asked["params"]["protocolVersion"],
            "capabilities": {"prompts": {}},
            "serverInfo": {"name": "halves", "version": "1"},
        });
        let answer = answer(result);
        let length = answer.len();
        return write!(stream, "HTTP/1.1 200 OK\r\n{kind}Content-Length: {length}\r\n\r\n{answer}")
            .is_ok();
    }
    let list = answer(json!({"prompts": [{"name": "t", "description": "x".repeat(TEXT)}]}));
    let (first, second) = list.split_at(list.len() / 2);
    let length = list.len();
    write!(stream, "HTTP/1.1 200 OK\r\n{kind}Content-Length: {length}\r\n\r\n{first}").unwrap();
    match reported.lock().unwrap().recv().unwrap() {
        Rest::Comes => stream.write_all(second.as_bytes()).is_ok(),
        Rest::BreaksOff => false,
        Rest::IsNonsense => stream.write_all(second.replace("}]}}", "}]}]").as_bytes()).is_ok(),
    }
}

/// Asks for the list until it is answered in one piece. On a slow machine it may take too long for
/// that, and then it comes as a stream.
fn begun(agent: &Agent, upstream: &Halves) -> Connection {
    eventually("a list is answered in one piece", || {
        let mut connection = agent.begin(LIST);
        let head = connection.head();
        assert_eq!(head.status, 200, "{head:?}");
        if head.header("content-type") != Some("application/json") {
            upstream.rest.send(Rest::Comes).unwrap();
            return None;
        }
        let length = TEXT
            + r#"{"jsonrpc":"2.0","id":"mine","result":{"prompts":[{"description":"","name":"t"}]}}"#
                .len();
        assert_eq!(head.header("content-length"), Some(length.to_string().as_str()));
        Some(connection)
    })
}

#[test]
fn a_large_list_is_streamed() {
    let upstream = halves();
    let gate =
        Gate::start(&format!("servers:\n  halves: {{ url: http://{} }}\n", upstream.address));
    // The list of toolgate itself, when it starts.
    upstream.rest.send(Rest::Comes).unwrap();
    let agent = Agent::open(&gate, "halves");

    let mut connection = begun(&agent, &upstream);
    let start = r#"{"jsonrpc":"2.0","id":"mine","result":{"prompts":[{"description":""#;
    assert_eq!(connection.exactly(start.len()), start.as_bytes());
    upstream.rest.send(Rest::Comes).unwrap();
    assert_eq!(connection.exactly(TEXT), [b'x'].repeat(TEXT));
    assert_eq!(connection.exactly(16), br#"","name":"t"}]}}"#);

    for rest in [Rest::BreaksOff, Rest::IsNonsense] {
        let mut connection = begun(&agent, &upstream);
        upstream.rest.send(rest).unwrap();
        let seen = connection.until_closed();
        assert!(seen.len() < TEXT + start.len() + 16, "{rest:?}: {} bytes", seen.len());
        gate.log.line_with(&["relayed answer cut off"]);
    }

    let mut connection = begun(&agent, &upstream);
    upstream.rest.send(Rest::Comes).unwrap();
    assert_eq!(connection.exactly(start.len()), start.as_bytes(), "and the next one works");
}
