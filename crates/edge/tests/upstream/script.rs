//! A scripted HTTP server: the test itself reads every request and writes every byte back.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use toolgate_edge::remote::{Client, HttpTransport, RemoteConnector, RemoteSpec};
use toolgate_gateway::channel::{Channel, Connector, Outbound, SendError};

use crate::recorder::{Record, message, recorder, soon};

/// The server; requests come out of it in the order in which they were complete.
pub(crate) struct Script {
    pub(crate) address: SocketAddr,
    calls: mpsc::UnboundedReceiver<Call>,
}

/// One request, and the connection to answer it on.
pub(crate) struct Call {
    /// Counts the connections of this server.
    pub(crate) connection: usize,
    /// The request line.
    pub(crate) line: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
    stream: TcpStream,
    calls: mpsc::UnboundedSender<Call>,
}

impl Script {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, calls) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut connection = 0;
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(read_call(stream, connection, sender.clone()));
                connection += 1;
            }
        });
        Self { address, calls }
    }

    pub(crate) async fn call(&mut self) -> Call {
        soon(self.calls.recv()).await.unwrap()
    }

    /// Whether nothing else has been asked.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.calls.try_recv().is_err()
    }

    pub(crate) fn spec(&self) -> RemoteSpec {
        let url = format!("http://{}/mcp?channel=secret", self.address);
        RemoteSpec {
            transport: HttpTransport::Streamable,
            ..RemoteSpec::new("demo", url.parse().unwrap())
        }
    }

    /// A channel to this server, and what it says on its own.
    pub(crate) async fn connect(&self) -> (Arc<dyn Channel>, Record) {
        connect(self.spec()).await.unwrap()
    }
}

pub(crate) async fn connect(spec: RemoteSpec) -> Result<(Arc<dyn Channel>, Record), SendError> {
    let (inbox, record) = recorder();
    Ok((RemoteConnector::new(Client::new(), spec).connect(inbox).await?, record))
}

/// Sends in the background; the record hears what the exchange brings.
pub(crate) fn send(
    channel: &Arc<dyn Channel>,
    message: Outbound,
) -> (JoinHandle<Result<(), SendError>>, Record) {
    let (inbox, record) = recorder();
    let channel = Arc::clone(channel);
    (tokio::spawn(async move { channel.send(message, inbox).await }), record)
}

/// Sends `message`, lets the server do `serve`, and gives what came of it.
pub(crate) async fn exchange<F: Future>(
    server: &mut Script,
    channel: &Arc<dyn Channel>,
    message: Outbound,
    serve: impl FnOnce(Call) -> F,
) -> (Result<(), SendError>, Record) {
    let (sending, record) = send(channel, message);
    serve(server.call().await).await;
    (soon(sending).await.unwrap(), record)
}

/// Whether one of the next requests comes on a connection that has been used before. Which one
/// depends on how soon the client sees that a connection is idle.
pub(crate) async fn reuses_connections(server: &mut Script, channel: &Arc<dyn Channel>) -> bool {
    for known in 1..20 {
        let mut connection = 0;
        let (result, _) = exchange(server, channel, message("{}"), async |call: Call| {
            connection = call.connection;
            call.json("{\"result\":{}}").await;
        })
        .await;
        result.unwrap();
        if connection < known {
            return true;
        }
    }
    false
}

impl Call {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(known, _)| known == name);
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "`{name}` came twice");
        value
    }

    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// Answers in one piece and waits for the next request on the same connection.
    pub(crate) async fn answer(mut self, status: u16, headers: &str, body: &str) {
        let length = body.len();
        self.write(format!(
            "HTTP/1.1 {status} X\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        ))
        .await;
        self.again();
    }

    pub(crate) async fn json(self, body: &str) {
        self.answer(200, "Content-Type: application/json\r\n", body).await;
    }

    /// Begins an event stream.
    pub(crate) async fn stream(&mut self) {
        self.write(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\
             Transfer-Encoding: chunked\r\n\r\n",
        )
        .await;
    }

    /// Sends a part of an event stream.
    pub(crate) async fn chunk(&mut self, text: &str) {
        self.write(format!("{:x}\r\n{text}\r\n", text.len())).await;
    }

    /// Ends the stream as it should be and waits for the next request.
    pub(crate) async fn finish(mut self) {
        self.write("0\r\n\r\n").await;
        self.again();
    }

    pub(crate) fn again(self) {
        tokio::spawn(read_call(self.stream, self.connection, self.calls));
    }

    /// Waits until the other side has hung up.
    pub(crate) async fn hung_up(mut self) {
        let mut rest = Vec::new();
        // A reset is a hang-up as well.
        drop(soon(self.stream.read_to_end(&mut rest)).await);
    }
}

async fn read_call(
    mut stream: TcpStream,
    connection: usize,
    calls: mpsc::UnboundedSender<Call>,
) -> Option<()> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8(bytes.get(..head)?.to_vec()).ok()?;
    let (line, rest) = text.split_once("\r\n")?;
    let headers: Vec<(String, String)> = rest
        .split("\r\n")
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = bytes.split_off(head + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    let body = String::from_utf8(body).ok()?;
    let line = line.to_owned();
    let call = Call { connection, line, headers, body, stream, calls: calls.clone() };
    calls.send(call).ok()
}
