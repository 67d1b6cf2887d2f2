//! HTTP/1.1 by hand: sends whatever a test wants to be sent, and reads answers and events.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::gate::GUARD;

/// One connection.
pub(crate) struct Connection {
    stream: BufReader<Box<dyn Stream>>,
}

/// What a connection reads and writes: TCP, or TLS over it.
pub(crate) trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

/// The head of an answer.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// A server-sent event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) data: String,
    pub(crate) retry: Option<u64>,
}

/// The events of an answer, as they come.
pub(crate) struct Events {
    connection: Connection,
    /// Bytes that are not a complete line yet.
    begun: Vec<u8>,
}

/// One request on a connection of its own.
pub(crate) fn ask(address: &str, request: &str) -> Reply {
    let mut connection = Connection::open(address);
    connection.send(request.as_bytes());
    connection.reply()
}

/// A GET without further headers.
pub(crate) fn get(address: &str, path: &str) -> Reply {
    ask(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n"))
}

// === impl Connection ===

impl Connection {
    pub(crate) fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(GUARD)).unwrap();
        stream.set_write_timeout(Some(GUARD)).unwrap();
        Self::over(stream)
    }

    pub(crate) fn over(stream: impl Stream + 'static) -> Self {
        Self { stream: BufReader::new(Box::new(stream)) }
    }

    /// So many bytes.
    pub(crate) fn exactly(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).unwrap();
    }

    /// For what the other side may refuse to read to its end.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    pub(crate) fn head(&mut self) -> Head {
        self.try_head().unwrap_or_else(|| panic!("the connection was closed without an answer"))
    }

    /// None if the connection is closed instead.
    pub(crate) fn try_head(&mut self) -> Option<Head> {
        let status = self.line()?;
        let status = status.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Some(Head { status, headers });
            }
            let (name, value) = line.split_once(':').unwrap();
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    pub(crate) fn reply(&mut self) -> Reply {
        let head = self.head();
        self.body(head)
    }

    /// The rest of an answer.
    pub(crate) fn body(&mut self, head: Head) -> Reply {
        let body = match (head.header("content-length"), head.header("transfer-encoding")) {
            (Some(length), _) => self.exactly(length.parse().unwrap()),
            (None, Some(_)) => {
                let mut body = Vec::new();
                while let Some(chunk) = self.chunk() {
                    body.extend(chunk);
                }
                body
            }
            (None, None) if matches!(head.status, 202 | 204) => Vec::new(),
            (None, None) => self.rest(),
        };
        let body = String::from_utf8(body).unwrap();
        Reply { status: head.status, headers: head.headers, body }
    }

    /// Everything up to the end of the connection.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).unwrap();
        rest
    }

    /// Everything up to the end of a connection that may also be reset.
    pub(crate) fn until_closed(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        if let Err(error) = self.stream.read_to_end(&mut rest) {
            assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "it was never closed");
        }
        rest
    }

    /// The next chunk; none at the end, also at an end that comes too early.
    fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = usize::from_str_radix(&self.line()?, 16).unwrap();
        let mut chunk = vec![0; size];
        self.stream.read_exact(&mut chunk).ok()?;
        self.line()?;
        (size > 0).then_some(chunk)
    }

    fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        let read = self.stream.read_until(b'\n', &mut line);
        // A guard that ran out is a failure of the test; a reset is an end like any other.
        let timed_out = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
        assert!(!read.as_ref().is_err_and(timed_out), "no answer came");
        (read.ok()? > 0).then(|| String::from_utf8(line).unwrap().trim_end().to_owned())
    }
}

// === impl Head and Reply ===

impl Head {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

// === impl Events ===

impl Events {
    /// Reads the head of an answer that must be a stream.
    pub(crate) fn of(mut connection: Connection) -> Self {
        let head = connection.head();
        assert_eq!(head.status, 200, "{head:?}");
        assert_eq!(head.header("content-type"), Some("text/event-stream"), "{head:?}");
        Self { connection, begun: Vec::new() }
    }

    /// The next event; none when the stream has ended.
    pub(crate) fn next(&mut self) -> Option<Event> {
        let mut event = Event::default();
        let mut printed = false;
        loop {
            let line = self.line()?;
            match line.split_once(':') {
                None if line.is_empty() && printed => return Some(event),
                Some(("id", id)) => event.id = Some(id.trim().to_owned()),
                Some(("data", data)) => event.data.push_str(data.trim()),
                Some(("retry", retry)) => event.retry = retry.trim().parse().ok(),
                // Comments, and the empty line after one.
                _ => continue,
            }
            printed = true;
        }
    }

    /// The next event that carries a message.
    pub(crate) fn message(&mut self) -> Option<(Event, Value)> {
        loop {
            let event = self.next()?;
            if !event.data.is_empty() {
                let message = serde_json::from_str(&event.data).unwrap();
                return Some((event, message));
            }
        }
    }

    fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.begun.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.begun.drain(..=end).collect();
                return Some(String::from_utf8(line).unwrap().trim_end().to_owned());
            }
            self.begun.extend(self.connection.chunk()?);
        }
    }
}
