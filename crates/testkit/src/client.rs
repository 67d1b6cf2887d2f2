//! A lean HTTP/1.1 client for agents in tests: one keep-alive connection, one request at a time.
//!
//! Every break of the connection is an error for the caller. Start at [`Connection::open`].

use std::io::{self, Error, ErrorKind};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A step that takes longer is reported as [`ErrorKind::TimedOut`].
const GUARD: Duration = Duration::from_mins(2);

/// One keep-alive connection.
#[derive(Debug)]
pub struct Connection(BufReader<TcpStream>);

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// `Mcp-Session-Id`.
    pub session: Option<String>,
    /// The body, or the data of all events.
    pub messages: Vec<String>,
}

#[derive(Default)]
struct Head {
    status: u16,
    session: Option<String>,
    length: u64,
    chunked: bool,
    events: bool,
}

impl Connection {
    /// Connects.
    pub async fn open(address: &str) -> io::Result<Self> {
        let stream = guarded(TcpStream::connect(address)).await?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends a request, head and body.
    pub async fn send(&mut self, request: &str) -> io::Result<()> {
        guarded(self.0.write_all(request.as_bytes())).await
    }

    /// Receives the answer to the last request.
    pub async fn receive(&mut self) -> io::Result<Answer> {
        guarded(self.read()).await
    }

    async fn read(&mut self) -> io::Result<Answer> {
        let head = self.head().await?;
        let mut body = Vec::new();
        if head.chunked {
            loop {
                let line = self.line().await?;
                let size = u64::from_str_radix(&line, 16).map_err(Error::other)?;
                self.bytes(size, &mut body).await?;
                self.line().await?;
                if size == 0 {
                    break;
                }
            }
        } else {
            self.bytes(head.length, &mut body).await?;
        }
        let body = String::from_utf8(body).map_err(Error::other)?;
        let messages = if head.events {
            let data = body.lines().filter_map(|line| line.strip_prefix("data:"));
            data.map(|data| data.trim().to_owned()).filter(|data| !data.is_empty()).collect()
        } else {
            vec![body]
        };
        Ok(Answer { status: head.status, session: head.session, messages })
    }

    async fn head(&mut self) -> io::Result<Head> {
        let status = self.line().await?;
        let status = status.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or(ErrorKind::InvalidData)?;
        let mut head = Head { status, ..Head::default() };
        loop {
            let line = self.line().await?;
            let Some((name, value)) = line.split_once(": ") else { return Ok(head) };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => head.length = value.parse().map_err(Error::other)?,
                "transfer-encoding" => head.chunked = true,
                "content-type" => head.events = value.starts_with("text/event-stream"),
                "mcp-session-id" => head.session = Some(value.to_owned()),
                _ => {}
            }
        }
    }

    async fn bytes(&mut self, count: u64, body: &mut Vec<u8>) -> io::Result<()> {
        let read = (&mut self.0).take(count).read_to_end(body).await?;
        if read as u64 == count { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
    }

    async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        line.truncate(line.trim_end().len());
        Ok(line)
    }
}

async fn guarded<T>(step: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(GUARD, step).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}
