//! The front: a thread of its own that accepts connections and answers `/healthz`.
//!
//! Whatever keeps the other threads busy, the front only inspects the first bytes of a connection;
//! with TLS it makes the handshake first (decision 50). It answers `/healthz` itself and passes any
//! other connection on to the main runtime.
//!
//! Invariant: nothing on this thread takes long. A handshake is about a millisecond of work and
//! waits for its client without blocking the thread.

use std::io;
use std::thread;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::tls::{Secure, Stream};

/// A handle of the thread; the thread ends with the last handle.
#[derive(Debug, Clone)]
pub struct Front {
    handle: Handle,
    _ends: std::sync::Arc<DropGuard>,
}

impl Front {
    /// Starts the thread.
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let ended = CancellationToken::new();
        let ends = std::sync::Arc::new(ended.clone().drop_guard());
        let run = move || runtime.block_on(ended.cancelled());
        thread::Builder::new().name("front".to_owned()).spawn(run)?;
        Ok(Self { handle, _ends: ends })
    }

    /// Runs a short task on the thread.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }
}

/// The beginnings of a request for `/healthz`.
const HEALTH: [&[u8]; 4] =
    [b"GET /healthz ", b"GET /healthz?", b"HEAD /healthz ", b"HEAD /healthz?"];
/// How many bytes of a connection are inspected.
const PEEKED: usize = 16;
/// How often an incomplete beginning is inspected again.
const AGAIN: Duration = Duration::from_millis(5);

/// Whether the connection begins with a request for `/healthz`; `None` if too little arrives in
/// time. Consumes no bytes.
pub(super) async fn is_health_request(stream: &mut Stream, patience: Duration) -> Option<bool> {
    let looking = async {
        match stream {
            Stream::Plain(stream) => begins_with_health(stream).await,
            Stream::Secure(secure) => tls_begins_with_health(secure).await,
        }
    };
    timeout(patience, looking).await.ok()
}

async fn begins_with_health(stream: &TcpStream) -> bool {
    let mut beginning = [0; PEEKED];
    loop {
        let Ok(count) = stream.peek(&mut beginning).await else { return false };
        let begun = beginning.get(..count).unwrap_or_default();
        match is_health(begun) {
            Some(is_health) => return is_health,
            None if count == 0 => return false,
            None => sleep(AGAIN).await,
        }
    }
}

async fn tls_begins_with_health(secure: &mut Secure) -> bool {
    let mut known = 0;
    loop {
        let Ok(begun) = secure.peek(known, PEEKED).await else { return false };
        match is_health(begun) {
            Some(is_health) => return is_health,
            // The connection has ended.
            None if begun.len() == known => return false,
            None => known = begun.len(),
        }
    }
}

/// Whether a request that begins like this is for `/healthz`; `None` if it may become one.
fn is_health(begun: &[u8]) -> Option<bool> {
    if HEALTH.iter().any(|health| begun.starts_with(health)) {
        return Some(true);
    }
    let may_become = HEALTH.iter().any(|health| health.starts_with(begun));
    (!may_become).then_some(false)
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn only_a_request_for_health_is_answered_in_front() {
        let cases: [(&[&[u8]], bool); 8] = [
            (&[b"GET /healthz HTTP/1.1\r\n"], true),
            (&[b"GET /healthz?x HTTP/1.1\r\n"], true),
            (&[b"HEAD /healthz HTTP/1.1\r\n"], true),
            (&[b"GET /he", b"althz ", b"HTTP/1.1\r\n"], true),
            (&[b"GET /healthzz HTTP/1.1\r\n"], false),
            (&[b"POST /healthz HTTP/1.1\r\n"], false),
            (&[b"GET /he", b"llo"], false),
            (&[b""], false),
        ];
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        for (parts, expected) in cases {
            let mut theirs = TcpStream::connect(address).await.unwrap();
            let (ours, _) = listener.accept().await.unwrap();
            let mut ours = Stream::Plain(ours);
            let looking = is_health_request(&mut ours, Duration::from_mins(1));
            let sending = async {
                for part in parts {
                    theirs.write_all(part).await.unwrap();
                    tokio::task::yield_now().await;
                }
                theirs.shutdown().await.unwrap();
            };
            let (found, ()) = tokio::join!(looking, sending);
            assert_eq!(found, Some(expected), "{parts:?}");
        }
    }
}
