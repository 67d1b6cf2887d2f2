//! A program that dials in, driven by a test message by message.

use std::future::Future;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::gate::{GUARD, Gate};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// One socket of such a program.
pub(crate) struct Program {
    runtime: Runtime,
    socket: Socket,
}

/// The parameters of `session.register`.
#[derive(Clone)]
pub(crate) struct Card {
    pub(crate) uid: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) base: &'static str,
    pub(crate) tools: Value,
}

impl Card {
    /// A thin client with one tool that takes anything.
    pub(crate) fn new(uid: &'static str, tool: &str) -> Self {
        Self { uid, kind: "client", base: "trade", tools: json!([tool_of(tool)]) }
    }

    pub(crate) fn with(self, tools: Value) -> Self {
        Self { tools, ..self }
    }

    pub(crate) fn of(self, kind: &'static str, base: &'static str) -> Self {
        Self { kind, base, ..self }
    }

    pub(crate) fn params(&self) -> Value {
        json!({
            "client_uid": self.uid, "kind": self.kind, "version": "8.3.27",
            "infobase_name": self.base, "ib_session_number": 1, "tools": self.tools,
        })
    }
}

/// A tool that takes anything.
pub(crate) fn tool_of(name: &str) -> Value {
    json!({"name": name, "description": format!("does {name}"), "input_schema": {"type": "object"}})
}

impl Program {
    /// Connects without registering.
    pub(crate) fn dial(gate: &Gate) -> Self {
        Self::dial_at(gate, "").unwrap()
    }

    /// Connects with something behind the path, such as `/token`.
    pub(crate) fn dial_at(gate: &Gate, token: &str) -> Result<Self, Error> {
        Self::dial_as(gate, token, &[])
    }

    /// Connects with further headers.
    pub(crate) fn dial_as(
        gate: &Gate,
        token: &str,
        headers: &[(&'static str, &'static str)],
    ) -> Result<Self, Error> {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let url = format!("{}{token}", gate.ready()["sessions"].as_str().unwrap());
        let mut request = url.into_client_request()?;
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let (socket, _) = runtime.block_on(soon(connect_async(request)))?;
        Ok(Self { runtime, socket })
    }

    /// Connects and registers.
    pub(crate) fn register(gate: &Gate, card: &Card) -> Self {
        Self::register_at(gate, "", card)
    }

    pub(crate) fn register_at(gate: &Gate, token: &str, card: &Card) -> Self {
        let mut program = Self::dial_at(gate, token).unwrap();
        let answer = program.ask("session.register", &card.params());
        assert_eq!(answer["result"]["session_id"], card.uid, "{answer}");
        program
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.send(Message::text(text)).unwrap();
    }

    pub(crate) fn send(&mut self, message: Message) -> Result<(), Error> {
        self.runtime.block_on(soon(self.socket.send(message)))
    }

    /// Sends a request and reads what comes next, which must be its answer.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.say(
            &json!({"jsonrpc": "2.0", "id": "r", "method": method, "params": params}).to_string(),
        );
        let answer = self.hear();
        assert_eq!(answer["id"], "r", "{answer}");
        answer
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.say(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// The next text, as it is.
    pub(crate) fn hear_raw(&mut self) -> String {
        loop {
            match self.next() {
                Some(Ok(Message::Text(text))) => return text.as_str().to_owned(),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("no text came, but {other:?}"),
            }
        }
    }

    pub(crate) fn hear(&mut self) -> Value {
        serde_json::from_str(&self.hear_raw()).unwrap()
    }

    /// The next call: its id, and what is called with what.
    pub(crate) fn called(&mut self) -> (String, Value) {
        let call = self.hear();
        assert_eq!(call["method"], "tool.call", "{call}");
        (call["id"].as_str().unwrap().to_owned(), call["params"].clone())
    }

    /// Answers a call with one text.
    pub(crate) fn answer(&mut self, id: &str, words: &str) {
        let result = json!({"content": [{"type": "text", "text": words}]});
        self.say(&json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
    }

    /// Waits for the next call and answers it.
    pub(crate) fn serve(&mut self, words: &str) -> Value {
        let (id, params) = self.called();
        self.answer(&id, words);
        params
    }

    /// Waits until the other side closes; the code. Whatever comes before is passed over.
    pub(crate) fn closed(&mut self) -> Option<u16> {
        loop {
            match self.next() {
                Some(Ok(Message::Close(frame))) => return frame.map(|frame| frame.code.into()),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return None,
            }
        }
    }

    fn next(&mut self) -> Option<Result<Message, Error>> {
        self.runtime.block_on(soon(self.socket.next()))
    }
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    let limit: Duration = GUARD * 2;
    timeout(limit, what).await.unwrap_or_else(|_| panic!("it never happened"))
}
