//! A call that waits for its connection is judged again before a byte of it is written.
//!
//! The server stops accepting connections and its backlog is full, so the kernel leaves new
//! connections waiting. A freeze comes meanwhile; then the server accepts again.

use std::fs;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::api::Api;
use crate::gate::{Gate, Home, eventually};
use crate::recorder::{ERAS, Era, answer};
use crate::upstream::read;

const POLICY: &str = "version: '1'\ndefault: deny\ntools:\n  t: { action: allow, limits: [{ counter: c, max: 1, window: hour, scope: grant }] }\n";
/// More connections than the backlog holds.
const MANY: usize = 5_000;
/// How long a connection is tried before the backlog is taken to be full.
const FULL: Duration = Duration::from_millis(300);

/// A server that takes one request on each connection, and can stop accepting.
struct Door {
    address: SocketAddr,
    is_shut: Arc<AtomicBool>,
    calls: Arc<Mutex<Vec<Value>>>,
}

impl Door {
    fn open(era: Era) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (is_shut, calls) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let (shut, record) = (Arc::clone(&is_shut), Arc::clone(&calls));
        thread::spawn(move || {
            loop {
                let accepted =
                    if shut.load(Ordering::SeqCst) { None } else { listener.accept().ok() };
                let Some((stream, _)) = accepted else {
                    thread::sleep(Duration::from_millis(2));
                    continue;
                };
                stream.set_nonblocking(false).unwrap();
                let record = Arc::clone(&record);
                thread::spawn(move || serve(&stream, era, &record));
            }
        });
        Self { address, is_shut, calls }
    }

    /// Stops accepting, and fills the backlog; what fills it.
    fn shut(&self) -> Vec<TcpStream> {
        self.is_shut.store(true, Ordering::SeqCst);
        let connect = |_| TcpStream::connect_timeout(&self.address, FULL).ok();
        (0..MANY).map_while(connect).collect()
    }

    fn open_again(&self) {
        self.is_shut.store(false, Ordering::SeqCst);
    }

    fn calls(&self) -> usize {
        self.calls.lock().unwrap().len()
    }

    /// Whether the kernel has a connection to it that waits.
    fn has_waiting(&self) -> bool {
        let to = format!("0100007F:{:04X}", self.address.port());
        let table = fs::read_to_string("/proc/net/tcp").unwrap();
        table.lines().any(|line| {
            let columns: Vec<_> = line.split_whitespace().collect();
            columns.get(2) == Some(&&*to) && columns.get(3) == Some(&"02")
        })
    }
}

fn serve(mut stream: &TcpStream, era: Era, calls: &Mutex<Vec<Value>>) {
    let Some((head, body)) = read(&mut BufReader::new(stream)) else { return };
    let message: Value = serde_json::from_str(&body).unwrap_or_default();
    if message["method"] == "tools/call" {
        calls.lock().unwrap().push(message.clone());
    }
    let answer = answer(head.starts_with("POST"), &message, era, &|_| None);
    let answer = answer.replacen("\r\n", "\r\nConnection: close\r\n", 1);
    // A client that has hung up reads nothing.
    drop(stream.write_all(answer.as_bytes()));
}

/// Freezes everything while a call waits for its connection; the answer to the call.
fn frozen_while_connecting(gate: &Gate, door: &Door, agent: &Agent) -> Value {
    let api = Api::admin(gate);
    let filling = door.shut();
    assert!(filling.len() < MANY, "the backlog is never full");
    eventually("no connection of the filling waits", || (!door.has_waiting()).then_some(()));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "t", "arguments": {}}});
    let mut calling = agent.begin(&body.to_string());
    eventually("the call waits for its connection", || door.has_waiting().then_some(()));
    let made = api.expect(201, "POST", "freeze", r#"{"all":true}"#);
    door.open_again();
    let answer = crate::sessionless::last(&calling.reply());
    drop(filling);
    api.expect(204, "DELETE", &format!("freeze/{}", made["id"].as_str().unwrap()), "");
    answer
}

#[test]
fn a_call_that_waits_for_its_connection_is_not_written_after_a_freeze() {
    for era in ERAS {
        let door = Door::open(era);
        let home = Home::new();
        let file = home.path("policy.yaml");
        fs::write(&file, POLICY).unwrap();
        let config = format!("servers: {{ web: {{ url: 'http://{}/mcp' }} }}", door.address);
        let gate = Gate::start_as(home, &config, |command| {
            command.arg("--policy").arg(file);
        });
        let agent = Agent::open(&gate, "web");
        // A connection that takes too long is given up as well; then the freeze decided nothing.
        let frozen = (0..5).find_map(|_| {
            let answer = frozen_while_connecting(&gate, &door, &agent);
            let meta = &answer["result"]["_meta"];
            assert_eq!(meta["effect"], "not_started", "{era:?}: {answer}");
            assert_eq!(door.calls(), 0, "{era:?}: {answer}");
            (meta["error_code"] == "frozen").then_some(())
        });
        assert!(frozen.is_some(), "{era:?}: no connection came up in time");
        // The counter was returned, and is taken by what is written.
        let written = agent.call("t", &json!({}));
        assert_ne!(written["isError"], true, "{era:?}: {written}");
        assert_eq!(agent.call("t", &json!({}))["_meta"]["error_code"], "rate_limited");
        assert_eq!(door.calls(), 1, "{era:?}");
    }
}
