//! Minimal HTTP/1.1 for faulty peers: a port, a thread per connection, raw requests, and answers
//! written byte by byte.

use std::io::{self, BufRead, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;

/// A loopback port; dropping it closes the port and every connection.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    connections: Mutex<Vec<TcpStream>>,
    closed: AtomicBool,
}

/// One request with its body.
#[derive(Debug)]
pub(crate) struct Request {
    /// The raw request line and headers.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Port {
    /// Listens at `address` and runs `serve` for each connection on its own thread.
    pub(crate) fn open(
        address: &str,
        serve: impl Fn(&TcpStream) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let (all, serve) = (Arc::clone(&shared), Arc::new(serve));
        let accepting = thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if all.closed.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(kept), Ok(())) = (stream.try_clone(), stream.set_nodelay(true)) else {
                    continue;
                };
                all.connections.lock().push(kept);
                let serve = Arc::clone(&serve);
                thread::spawn(move || {
                    serve(&stream);
                    // The other half is kept above, so the connection would not close on its own.
                    drop(stream.shutdown(Shutdown::Both));
                });
            }
        });
        Ok(Self { address, shared, accepting: Some(accepting) })
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        // Wakes the accepting thread.
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            // A panic there was already reported.
            drop(accepting.join());
        }
        for connection in self.shared.connections.lock().drain(..) {
            // It may already be closed.
            drop(connection.shutdown(Shutdown::Both));
        }
    }
}

impl Request {
    /// The next request; `None` when the peer has disconnected.
    pub(crate) fn read(reader: &mut impl BufRead) -> Option<Self> {
        let mut head = String::new();
        let mut length = 0;
        loop {
            let start = head.len();
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
            let line = head.get(start..)?;
            if line == "\r\n" {
                head.truncate(start);
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = String::new();
        reader.take(length).read_to_string(&mut body).ok()?;
        Some(Self { head, body })
    }

    /// Method and target, `POST /mcp?x=1`.
    pub(crate) fn target(&self) -> &str {
        self.head.split(" HTTP/").next().unwrap_or_default()
    }
}

/// A complete answer with these headers besides its length.
pub(crate) fn answer(
    mut stream: &TcpStream,
    status: &str,
    headers: &str,
    body: &str,
) -> io::Result<()> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n");
    stream.write_all(format!("{head}{body}").as_bytes())
}

/// The head of an event stream that ends with its connection.
pub(crate) fn begin_events(mut stream: &TcpStream, headers: &str) -> io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n";
    stream.write_all(format!("{head}{headers}\r\n").as_bytes())
}
