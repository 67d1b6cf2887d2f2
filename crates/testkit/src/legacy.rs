//! A server over HTTP+SSE, the transport of 2024-11-05, that records every raw request.
//!
//! GET `/sse` opens the stream of a session and names its endpoint; a POST there is accepted (202),
//! and the answer is sent on the stream before the 202. Besides the tools of a healthy server there
//! are `hang_up`, which ends the stream instead of answering, and `forget`, which drops the session
//! but not its stream.

use std::collections::HashMap;
use std::io::{self, BufReader, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::Value;

use crate::faulty::{ClientMessage, FaultyServer, ServerState};
use crate::http1::{Port, Request, answer, begin_events};

/// A running server; dropping it closes its port and all its connections.
#[derive(Debug)]
pub struct LegacyServer {
    port: Port,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    /// The prefix of the endpoint's path; normally empty.
    origin: String,
    opened: AtomicU64,
    sessions: Mutex<HashMap<u64, Session>>,
    requests: Mutex<Vec<String>>,
}

#[derive(Debug)]
struct Session {
    stream: TcpStream,
    mind: ServerState,
}

// === impl Legacy ===

impl LegacyServer {
    /// Starts on a free loopback port.
    pub fn start() -> io::Result<Self> {
        Self::start_at("127.0.0.1:0")
    }

    /// Starts at this address, to simulate a restart.
    pub fn start_at(address: &str) -> io::Result<Self> {
        Self::start_with(address, "")
    }

    /// A server that names endpoints of another origin.
    pub fn start_pointing_to(origin: &str) -> io::Result<Self> {
        Self::start_with("127.0.0.1:0", origin)
    }

    fn start_with(address: &str, origin: &str) -> io::Result<Self> {
        let state = Arc::new(State {
            origin: origin.to_owned(),
            opened: AtomicU64::new(0),
            sessions: Mutex::default(),
            requests: Mutex::default(),
        });
        let shared = Arc::clone(&state);
        // A broken connection is expected here.
        let port = Port::open(address, move |stream| drop(serve(stream, &shared)))?;
        Ok(Self { port, state })
    }

    /// Host and port.
    pub fn address(&self) -> String {
        self.port.address.to_string()
    }

    /// Where it listens, path included.
    pub fn url(&self) -> String {
        format!("http://{}/sse", self.port.address)
    }

    /// Every request so far, head and body.
    pub fn requests(&self) -> Vec<String> {
        self.state.requests.lock().clone()
    }

    /// How many sessions are open.
    pub fn sessions(&self) -> usize {
        self.state.sessions.lock().len()
    }
}

fn serve(stream: &TcpStream, state: &State) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    while let Some(request) = Request::read(&mut reader) {
        state.requests.lock().push(format!("{}\r\n{}", request.head, request.body));
        let (target, query) = request.target().split_once('?').unwrap_or((request.target(), ""));
        match target {
            "GET /sse" => return listen(stream, &mut reader, state),
            "POST /messages" => {
                let session = query.strip_prefix("session=").and_then(|id| id.parse().ok());
                if session.is_some_and(|session| state.take(session, &request)) {
                    answer(stream, "202 Accepted", "Content-Type: text/plain\r\n", "Accepted")?;
                } else {
                    answer(stream, "404 Not Found", "", "no such session")?;
                }
            }
            _ => answer(stream, "405 Method Not Allowed", "Allow: GET\r\n", "")?,
        }
    }
    Ok(())
}

/// Opens a session; it lasts as long as the stream.
fn listen(
    mut stream: &TcpStream,
    reader: &mut BufReader<&TcpStream>,
    state: &State,
) -> io::Result<()> {
    let number = state.opened.fetch_add(1, Ordering::Relaxed) + 1;
    let session =
        Session { stream: stream.try_clone()?, mind: ServerState::new(FaultyServer::Healthy, 0) };
    state.sessions.lock().insert(number, session);
    begin_events(stream, "")?;
    let endpoint = format!("{}/messages?session={number}", state.origin);
    stream.write_all(format!(": hello\n\nevent: endpoint\ndata: {endpoint}\n\n").as_bytes())?;
    // Only the end of the connection is expected here.
    while Request::read(reader).is_some() {}
    state.sessions.lock().remove(&number);
    Ok(())
}

impl State {
    /// Whether the session exists; then it has received the message and answered.
    fn take(&self, number: u64, request: &Request) -> bool {
        let mut sessions = self.sessions.lock();
        let Some(session) = sessions.get_mut(&number) else { return false };
        let Ok(heard) = serde_json::from_str::<ClientMessage>(&request.body) else { return true };
        match heard.params.get("name").and_then(Value::as_str) {
            Some("hang_up") => drop(session.stream.shutdown(Shutdown::Both)),
            Some("forget") => {
                session.say(&heard);
                sessions.remove(&number);
            }
            _ => session.say(&heard),
        }
        true
    }
}

impl Session {
    fn say(&mut self, heard: &ClientMessage) {
        if let Some(right) = self.mind.answer(heard) {
            let event = format!("event: message\r\ndata: {right}\r\n\r\n");
            // The client may have disconnected.
            drop(self.stream.write_all(event.as_bytes()));
        }
    }
}
