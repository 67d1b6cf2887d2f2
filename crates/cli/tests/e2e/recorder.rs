//! A server over HTTP of either era that records every request, and answers calls as a test defines.
//!
//! Invariant: a request is in the record before any of its answer is written.

use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::upstream::read;

/// A recording server.
pub(crate) struct Recorder {
    pub(crate) address: String,
    received: Arc<Mutex<Vec<Received>>>,
}

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) head: String,
    /// Null if the body is not JSON.
    pub(crate) message: Value,
}

/// Which protocol a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Sessionful,
    Sessionless,
}

pub(crate) const ERAS: [Era; 2] = [Era::Sessionful, Era::Sessionless];

/// The result of a request, or none for the usual one.
type Answers = dyn Fn(&Value) -> Option<Value> + Send + Sync;

impl Recorder {
    /// A server that answers calls with an empty result and lists no tools.
    pub(crate) fn start(era: Era) -> Self {
        Self::answering(era, |_| None)
    }

    /// A server whose results `answers` decides, where it has one.
    pub(crate) fn answering(
        era: Era,
        answers: impl Fn(&Value) -> Option<Value> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let received = Arc::new(Mutex::new(Vec::new()));
        let (record, answers) = (Arc::clone(&received), Arc::new(answers));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, record) = (stream.unwrap(), Arc::clone(&record));
                let answers: Arc<Answers> = Arc::clone(&answers) as _;
                thread::spawn(move || serve(&stream, era, &*answers, &record));
            }
        });
        Self { address, received }
    }

    /// Its line under `servers:`.
    pub(crate) fn entry(&self, name: &str, keys: &str) -> String {
        format!("  {name}: {{ url: 'http://{}/mcp', {keys} }}\n", self.address)
    }

    /// Every request so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// Every request of this method so far.
    pub(crate) fn of(&self, method: &str) -> Vec<Received> {
        self.received()
            .into_iter()
            .filter(|received| received.message["method"] == method)
            .collect()
    }
}

impl Received {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        let mut found = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim())
    }
}

fn serve(stream: &TcpStream, era: Era, answers: &Answers, record: &Mutex<Vec<Received>>) {
    let mut reader = BufReader::new(stream);
    while let Some((head, body)) = read(&mut reader) {
        let message: Value = serde_json::from_str(&body).unwrap_or_default();
        let is_post = head.starts_with("POST");
        if is_post {
            record.lock().unwrap().push(Received { head, message: message.clone() });
        }
        let answer = answer(is_post, &message, era, answers);
        if (&*stream).write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// The whole HTTP answer.
pub(crate) fn answer(is_post: bool, message: &Value, era: Era, answers: &Answers) -> String {
    let empty = |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
    if !is_post {
        return empty("405 Method Not Allowed");
    }
    if message["id"].is_null() {
        return empty("202 Accepted");
    }
    let answer = match answers(message).or_else(|| usual(message, era)) {
        Some(result) => json!({"jsonrpc": "2.0", "id": message["id"], "result": result}),
        None => json!({"jsonrpc": "2.0", "id": message["id"],
            "error": {"code": -32601, "message": "no such method"}}),
    };
    let answer = answer.to_string();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{answer}",
        answer.len()
    )
}

fn usual(message: &Value, era: Era) -> Option<Value> {
    Some(match (message["method"].as_str()?, era) {
        ("initialize", Era::Sessionful) => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "recorder", "version": "1"},
        }),
        ("server/discover", Era::Sessionless) => json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
        }),
        ("ping", Era::Sessionful) => json!({}),
        ("tools/list", _) => json!({"tools": [], "resultType": "complete"}),
        ("tools/call", _) => json!({"content": [], "resultType": "complete"}),
        _ => return None,
    })
}
