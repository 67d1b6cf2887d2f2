//! A server over streamable HTTP that writes down every request as it came.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

/// The session that it gives out.
pub(crate) const SESSION: &str = "upstream-session-1";

/// A recording server.
pub(crate) struct Upstream {
    pub(crate) address: String,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    /// Heads with their bodies.
    requests: Mutex<Vec<String>>,
    connections: Mutex<Vec<TcpStream>>,
    stopped: AtomicBool,
}

impl Upstream {
    pub(crate) fn start() -> Self {
        Self::start_at("127.0.0.1:0")
    }

    pub(crate) fn start_at(address: &str) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::new(Shared::default());
        let all = Arc::clone(&shared);
        let accepting = thread::spawn(move || {
            for stream in listener.incoming() {
                if all.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let (stream, shared) = (stream.unwrap(), Arc::clone(&all));
                all.connections.lock().unwrap().push(stream.try_clone().unwrap());
                thread::spawn(move || serve(&stream, &shared));
            }
        });
        Self { address, shared, accepting }
    }

    /// Every request so far, head and body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Closes the port and every connection.
    pub(crate) fn stop(self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(&self.address));
        self.accepting.join().unwrap();
        for connection in self.shared.connections.lock().unwrap().iter() {
            // One that the other side has closed already is closed.
            drop(connection.shutdown(Shutdown::Both));
        }
    }
}

fn serve(stream: &TcpStream, shared: &Shared) {
    let mut reader = BufReader::new(stream);
    while let Some((head, body)) = read(&mut reader) {
        shared.requests.lock().unwrap().push(format!("{head}\r\n{body}"));
        let answer = answer(&head, &body);
        if (&*stream).write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

pub(crate) fn read(reader: &mut BufReader<&TcpStream>) -> Option<(String, String)> {
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8(body).unwrap()))
}

fn answer(head: &str, body: &str) -> String {
    let empty = |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
    if head.starts_with("GET") {
        return empty("405 Method Not Allowed");
    }
    if head.starts_with("DELETE") {
        return empty("200 OK");
    }
    let message: Value = serde_json::from_str(body).unwrap();
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "upstream", "version": "1"},
        }),
        Some("tools/call") => json!({
            "content": [],
            "structuredContent": {"head": head, "arguments": message["params"]["arguments"]},
        }),
        Some("tools/list") => json!({"tools": []}),
        Some("ping") => json!({}),
        _ => return empty("202 Accepted"),
    };
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
    let mut answer = String::new();
    write!(
        answer,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: {SESSION}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    answer
}
