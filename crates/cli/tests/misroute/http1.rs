//! A lean HTTP/1.1 client: one connection, one request under way.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A step that takes so long will never end.
const GUARD: Duration = Duration::from_mins(1);

/// One keep-alive connection.
pub(crate) struct Connection(BufReader<TcpStream>);

/// An answer in full.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    /// The JSON body, or the data of all events.
    pub(crate) messages: Vec<String>,
}

#[derive(Default)]
struct Head {
    status: u16,
    session: Option<String>,
    length: Option<usize>,
    chunked: bool,
    events: bool,
}

impl Connection {
    pub(crate) async fn open(address: &str) -> Self {
        let stream = guarded(TcpStream::connect(address)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(stream))
    }

    pub(crate) async fn send(&mut self, request: &str) {
        guarded(self.0.write_all(request.as_bytes())).await.unwrap();
    }

    pub(crate) async fn receive(&mut self) -> Answer {
        guarded(self.read()).await
    }

    async fn read(&mut self) -> Answer {
        let head = self.head().await;
        let mut body = Vec::new();
        if head.chunked {
            loop {
                let size = usize::from_str_radix(&self.line().await, 16).unwrap();
                let start = body.len();
                body.resize(start + size, 0);
                self.0.read_exact(&mut body[start..]).await.unwrap();
                self.line().await;
                if size == 0 {
                    break;
                }
            }
        } else {
            body.resize(head.length.unwrap_or(0), 0);
            self.0.read_exact(&mut body).await.unwrap();
        }
        let body = String::from_utf8(body).unwrap();
        let messages = if head.events {
            let data = body.lines().filter_map(|line| line.strip_prefix("data:"));
            data.map(|data| data.trim().to_owned()).filter(|data| !data.is_empty()).collect()
        } else {
            vec![body]
        };
        Answer { status: head.status, session: head.session, messages }
    }

    async fn head(&mut self) -> Head {
        let status = self.line().await;
        let status = status.split(' ').nth(1).unwrap_or_else(|| panic!("no status: `{status}`"));
        let mut head = Head { status: status.parse().unwrap(), ..Head::default() };
        loop {
            let line = self.line().await;
            let Some((name, value)) = line.split_once(": ") else { return head };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => head.length = Some(value.parse().unwrap()),
                "transfer-encoding" => head.chunked = true,
                "content-type" => head.events = value.starts_with("text/event-stream"),
                "mcp-session-id" => head.session = Some(value.to_owned()),
                _ => {}
            }
        }
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        line.truncate(line.trim_end().len());
        line
    }
}

async fn guarded<F: Future>(step: F) -> F::Output {
    timeout(GUARD, step).await.unwrap_or_else(|_| panic!("no answer came"))
}
