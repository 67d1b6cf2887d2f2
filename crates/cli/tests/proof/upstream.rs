//! The server: every tool that is called is carried out by writing a line to a file, before it is
//! answered. That file is what really happened.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A running server.
pub(crate) struct Upstream {
    pub(crate) url: String,
    file: PathBuf,
    executed: watch::Receiver<u64>,
}

/// Called for every execution, after it is recorded and before it is answered.
pub(crate) type OnExecution = dyn Fn(&str) + Send + Sync;

struct Shared {
    file: Mutex<File>,
    executed: watch::Sender<u64>,
    on_execution: Box<OnExecution>,
}

impl Upstream {
    /// Serves until the runtime ends; its record is in `folder`.
    pub(crate) async fn start(folder: &Path, on_execution: Box<OnExecution>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let path = folder.join("executed");
        let file = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        let (executed, seen) = watch::channel(0);
        let shared = Arc::new(Shared { file: Mutex::new(file), executed, on_execution });
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let shared = Arc::clone(&shared);
                // The gateway may vanish in the middle of anything.
                tokio::spawn(async move { serve(stream, &shared).await.ok() });
            }
        });
        Self { url, file: path, executed: seen }
    }

    /// Tool and mark of everything that was carried out, in order.
    pub(crate) fn executed(&self) -> Vec<(String, String)> {
        let text = fs::read_to_string(&self.file).unwrap();
        let pair = |line: &str| line.split_once(' ').map(|(t, m)| (t.to_owned(), m.to_owned()));
        text.lines().map(|line| pair(line).unwrap()).collect()
    }

    /// Waits until so much was carried out in all.
    pub(crate) async fn executed_at_least(&mut self, count: u64) {
        self.executed.wait_for(|executed| *executed >= count).await.unwrap();
    }

    /// How much was carried out in all.
    pub(crate) fn count(&self) -> u64 {
        *self.executed.borrow()
    }
}

async fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    loop {
        let (head, body) = read(&mut stream).await?;
        let answer = answer(&head, &body, shared);
        stream.write_all(answer.as_bytes()).await?;
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> io::Result<(String, String)> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        head.push_str(&line);
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok((head, String::from_utf8(body).map_err(io::Error::other)?))
}

fn answer(head: &str, body: &str, shared: &Shared) -> String {
    let empty = |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
    if head.starts_with("GET") {
        return empty("405 Method Not Allowed");
    }
    if head.starts_with("DELETE") {
        return empty("200 OK");
    }
    let message: Value = serde_json::from_str(body).unwrap();
    let params = &message["params"];
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "proof", "version": "1"},
        }),
        Some("tools/call") => {
            let (tool, mark) = (text(&params["name"]), text(&params["arguments"]["mark"]));
            shared.file.lock().unwrap().write_all(format!("{tool} {mark}\n").as_bytes()).unwrap();
            shared.executed.send_modify(|executed| *executed += 1);
            (shared.on_execution)(tool);
            json!({"content": [{"type": "text", "text": mark}]})
        }
        Some("tools/list") => json!({"tools": []}),
        _ => return empty("202 Accepted"),
    };
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}
