//! An agent whose gateway may vanish at any moment: MCP over one keep-alive connection, and every
//! break is an error that the caller sees, never a panic.

use std::io::{self, Error, ErrorKind};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A step that takes so long will never end.
const GUARD: Duration = Duration::from_mins(2);

/// One agent session on one connection.
pub(crate) struct Agent {
    connection: BufReader<TcpStream>,
    address: String,
    path: String,
    session: String,
    /// A header line, or nothing.
    authorization: String,
    next: u64,
}

/// What an agent was told of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// What the tool said.
    Done(String),
    /// The `error_code` of a refusal, and the whole result.
    Refused(String, Value),
}

#[derive(Default)]
struct Head {
    status: u16,
    session: Option<String>,
    length: Option<usize>,
    events: bool,
}

impl Agent {
    /// Connects and opens an agent session.
    pub(crate) async fn open(address: &str, path: &str, token: Option<&str>) -> io::Result<Self> {
        let stream = guarded(TcpStream::connect(address)).await?;
        stream.set_nodelay(true)?;
        let authorization =
            token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        let mut agent = Self {
            connection: BufReader::new(stream),
            address: address.to_owned(),
            path: path.to_owned(),
            session: String::new(),
            authorization,
            next: 1,
        };
        let about = json!({"name": "proof", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let (head, body) = agent.exchange(&hello.to_string()).await?;
        let session = head.session.ok_or_else(|| Error::other(format!("not opened: {body}")))?;
        agent.session = format!("Mcp-Session-Id: {session}\r\n");
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        agent.exchange(&ready.to_string()).await?;
        Ok(agent)
    }

    /// Calls a tool with `mark` as its argument.
    pub(crate) async fn call(&mut self, tool: &str, mark: &str) -> io::Result<Said> {
        let id = self.next;
        self.next += 1;
        let params = json!({"name": tool, "arguments": {"mark": mark}});
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        let (head, body) = self.exchange(&call.to_string()).await?;
        if head.status != 200 {
            return Err(Error::other(format!("HTTP {}: {body}", head.status)));
        }
        let answer = messages(&head, &body).find(|message| message["id"] == id);
        let answer = answer.ok_or_else(|| Error::other(format!("no answer in {body}")))?;
        let result = &answer["result"];
        match result["_meta"]["error_code"].as_str() {
            Some(code) => Ok(Said::Refused(code.to_owned(), result.clone())),
            None => match result["content"][0]["text"].as_str() {
                Some(text) => Ok(Said::Done(text.to_owned())),
                None => panic!("neither a result nor a refusal: {answer}"),
            },
        }
    }

    async fn exchange(&mut self, body: &str) -> io::Result<(Head, String)> {
        let Self { address, path, session, authorization, .. } = self;
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\n{session}{authorization}\
             Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        guarded(async {
            self.connection.write_all(request.as_bytes()).await?;
            self.read().await
        })
        .await
    }

    async fn read(&mut self) -> io::Result<(Head, String)> {
        let head = self.head().await?;
        let mut body = Vec::new();
        if let Some(length) = head.length {
            body.resize(length, 0);
            self.connection.read_exact(&mut body).await?;
        } else if head.status != 202 {
            loop {
                let line = self.line().await?;
                let size = usize::from_str_radix(&line, 16).map_err(Error::other)?;
                let start = body.len();
                body.resize(start + size, 0);
                self.connection.read_exact(&mut body[start..]).await?;
                self.line().await?;
                if size == 0 {
                    break;
                }
            }
        }
        Ok((head, String::from_utf8(body).map_err(Error::other)?))
    }

    async fn head(&mut self) -> io::Result<Head> {
        let status = self.line().await?;
        let status = status.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or(ErrorKind::UnexpectedEof)?;
        let mut head = Head { status, ..Head::default() };
        loop {
            let line = self.line().await?;
            let Some((name, value)) = line.split_once(": ") else { return Ok(head) };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => head.length = value.parse().ok(),
                "content-type" => head.events = value.starts_with("text/event-stream"),
                "mcp-session-id" => head.session = Some(value.to_owned()),
                _ => {}
            }
        }
    }

    async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.connection.read_line(&mut line).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        line.truncate(line.trim_end().len());
        Ok(line)
    }
}

/// The JSON body, or what the events hold.
fn messages(head: &Head, body: &str) -> impl Iterator<Item = Value> {
    let whole = (!head.events).then_some(body);
    let data = body.lines().filter_map(|line| line.strip_prefix("data:"));
    let data = data.filter(|_| head.events).map(str::trim);
    whole.into_iter().chain(data).filter_map(|text| serde_json::from_str(text).ok())
}

async fn guarded<T>(step: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(GUARD, step).await.unwrap_or_else(|_| panic!("no answer came"))
}
