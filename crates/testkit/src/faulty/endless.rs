//! An HTTP server with endless event streams: the answer is sent among notifications that never
//! stop.

use std::io::{self, BufReader, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use super::FaultyServer;
use super::answer::{ClientMessage, ServerState};
use crate::http1::{Port, Request, answer, begin_events};

const NOISE: &str = concat!(
    r#"data: {"jsonrpc":"2.0","method":"notifications/message","#,
    r#""params":{"level":"info","data":"still here"}}"#,
    "\n\n"
);
/// The number of notifications before an answer.
const BEFORE: usize = 10;
const JSON: &str = "Content-Type: application/json\r\nMcp-Session-Id: endless\r\n";

/// A running server; dropping it closes its port and all its connections.
#[derive(Debug)]
pub struct EndlessServer {
    port: Port,
}

impl EndlessServer {
    /// Starts it on a free loopback port; `pause` is the time between two notifications.
    pub fn start(pause: Duration) -> io::Result<Self> {
        // Broken connections are expected here.
        let port = Port::open("127.0.0.1:0", move |stream| drop(serve(stream, pause)))?;
        Ok(Self { port })
    }

    /// Where it listens, path included.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.port.address)
    }
}

fn serve(stream: &TcpStream, pause: Duration) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut state = ServerState::new(FaultyServer::EndlessSse, 0);
    while let Some(request) = Request::read(&mut reader) {
        let message: Option<ClientMessage> = serde_json::from_str(&request.body).ok();
        let right =
            message.as_ref().and_then(|message| state.answer(message)).map(|all| all.to_string());
        match (request.target(), right) {
            ("GET /mcp", _) => return stream_forever(stream, None, pause),
            ("DELETE /mcp", _) => answer(stream, "204 No Content", "", "")?,
            ("POST /mcp", Some(right)) if request.body.contains("\"initialize\"") => {
                answer(stream, "200 OK", JSON, &right)?;
            }
            ("POST /mcp", Some(right)) => return stream_forever(stream, Some(&right), pause),
            ("POST /mcp", None) => answer(stream, "202 Accepted", "", "")?,
            _ => answer(stream, "404 Not Found", "", "")?,
        }
    }
    Ok(())
}

/// Returns only when the client disconnects.
fn stream_forever(mut stream: &TcpStream, right: Option<&str>, pause: Duration) -> io::Result<()> {
    begin_events(stream, "")?;
    for number in 0_usize.. {
        stream.write_all(NOISE.as_bytes())?;
        if let Some(right) = right.filter(|_| number == BEFORE) {
            stream.write_all(format!("data: {right}\n\n").as_bytes())?;
        }
        thread::sleep(pause);
    }
    Ok(())
}
