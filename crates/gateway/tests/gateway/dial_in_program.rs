//! Programs that dial in, without sockets: a test does what the owner of a socket does.

#![expect(clippy::indexing_slicing, reason = "reads JSON values that the test knows")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Duration, timeout};
use toolgate_gateway::{DriverEnvironment, Note, SessionDriver, SocketCommand};
use toolgate_session::{Millis, SessionSettings, SocketId, SocketToken};

use crate::harness::{Agent, Harness, INITIALIZE};
use crate::reply::Reply;

/// Longer than any deadline.
const LONG: Duration = Duration::from_hours(24);

/// A gateway that programs can dial in to.
pub(crate) struct DialInBed {
    pub(crate) harness: Harness,
    pub(crate) driver: Arc<SessionDriver>,
    events: Arc<Mutex<Vec<String>>>,
}

/// One socket of a program.
pub(crate) struct Program {
    driver: Arc<SessionDriver>,
    socket: SocketId,
    commands: mpsc::Receiver<SocketCommand>,
}

/// What a program receives.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// A call, by its id, tool and arguments.
    Call(String, String, Value),
    /// Any other frame.
    Frame(Value),
    /// A call that was not written, because it is no longer allowed.
    NotWritten,
    /// The end of the socket.
    Closed(u16),
}

impl DialInBed {
    pub(crate) fn new() -> Self {
        Self::with(SessionSettings::default())
    }

    pub(crate) fn with(settings: SessionSettings) -> Self {
        let numbers = AtomicU64::new(1);
        let random = move || Some(numbers.fetch_add(1, Ordering::Relaxed).into());
        Self::of(Harness::new(), settings, random)
    }

    /// The same for this gateway, with these random numbers.
    pub(crate) fn of(
        harness: Harness,
        settings: SessionSettings,
        random: impl Fn() -> Option<u128> + Send + Sync + 'static,
    ) -> Self {
        let events = Arc::<Mutex<Vec<String>>>::default();
        let recorded = Arc::clone(&events);
        let environment = DriverEnvironment {
            record: Box::new(move |note| {
                if let Note::Event(event) = note {
                    recorded.lock().push(event.what.as_str().to_owned());
                }
            }),
            random: Box::new(random),
            max_unregistered: 100,
        };
        let driver = SessionDriver::start(settings, Vec::new(), Millis(0), environment);
        harness.gateway.set_dial_in(Arc::clone(&driver));
        Self { harness, driver, events }
    }

    /// What the driver has recorded since it was last asked.
    pub(crate) fn events(&self) -> Vec<String> {
        std::mem::take(&mut *self.events.lock())
    }

    /// Opens a socket.
    pub(crate) fn dial(&self) -> Program {
        let (sender, commands) = mpsc::channel(64);
        let socket = self.driver.open_socket(sender, Arc::new(SocketToken::default()), None);
        Program { driver: Arc::clone(&self.driver), socket, commands }
    }

    /// Opens a socket and registers with one tool.
    pub(crate) async fn register(&self, uid: &str, tool: &str) -> Program {
        let mut program = self.dial();
        let answer = program.ask("session.register", &card(uid, tool)).await;
        assert_eq!(answer["result"]["session_id"], uid, "{answer}");
        program
    }

    /// The same with this definition.
    pub(crate) async fn register_tool(&self, uid: &str, tool: &Value) -> Program {
        let mut program = self.dial();
        let mut card = card(uid, "");
        card["tools"][0] = tool.clone();
        card["tools"][0]["input_schema"] = json!({"type": "object"});
        let answer = program.ask("session.register", &card).await;
        assert_eq!(answer["result"]["session_id"], uid, "{answer}");
        program
    }

    /// An agent of `/mcp`.
    pub(crate) async fn agent(&self) -> Agent {
        self.harness.open_all(INITIALIZE).await
    }
}

/// The parameters of `session.register` for a program with one tool.
pub(crate) fn card(uid: &str, tool: &str) -> Value {
    json!({
        "client_uid": uid, "kind": "client", "version": "8.3.27", "infobase_name": "trade",
        "ib_session_number": 1,
        "tools": [{"name": tool, "description": "d", "input_schema": {"type": "object"}}],
    })
}

/// Calls a tool; nothing is awaited yet.
pub(crate) fn call(agent: &Agent, tool: &str, arguments: &Value) -> Reply {
    let params = json!({"name": tool, "arguments": arguments});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    agent.ask(&request.to_string())
}

/// The result of a call.
pub(crate) async fn result(reply: Reply) -> Value {
    let answer: Value = serde_json::from_str(&reply.answer().await).unwrap();
    assert_eq!(answer["id"], 1, "{answer}");
    answer["result"].clone()
}

impl Program {
    /// Sends a frame.
    pub(crate) fn send(&self, frame: &Value) {
        self.driver.receive_text(self.socket, &frame.to_string());
    }

    /// Sends a request; the next frame must be its answer.
    pub(crate) async fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": "r", "method": method, "params": params}));
        match self.receive().await {
            Received::Frame(answer) if answer["id"] == "r" => answer,
            other => panic!("no answer to {method} but {other:?}"),
        }
    }

    /// Answers a call with one text.
    pub(crate) fn answer(&self, id: &str, text: &str) {
        let result = json!({"content": [{"type": "text", "text": text}]});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    /// The next frame that is not a ping; the gate of a call is asked as the edge does.
    pub(crate) async fn receive(&mut self) -> Received {
        loop {
            let next = timeout(LONG, self.commands.recv()).await.expect("nothing was sent");
            return match next {
                None => Received::Closed(0),
                Some(SocketCommand::Ping | SocketCommand::Pong(_)) => {
                    self.driver.receive_other(self.socket);
                    continue;
                }
                Some(SocketCommand::Close(code, _) | SocketCommand::Drop(code, _)) => {
                    Received::Closed(code)
                }
                Some(SocketCommand::Call { call, gate, frame }) => {
                    if !gate.opens().await {
                        self.driver.not_sent(call);
                        return Received::NotWritten;
                    }
                    let frame: Value = serde_json::from_slice(&frame).unwrap();
                    let text = |value: &Value| value.as_str().unwrap().to_owned();
                    let params = &frame["params"];
                    let arguments = params["arguments"].clone();
                    Received::Call(text(&frame["id"]), text(&params["name"]), arguments)
                }
                Some(SocketCommand::Text(frame)) => {
                    Received::Frame(serde_json::from_slice(&frame).unwrap())
                }
            };
        }
    }

    /// The next call: its id and arguments.
    pub(crate) async fn called(&mut self) -> (String, Value) {
        match self.receive().await {
            Received::Call(id, _, arguments) => (id, arguments),
            other => panic!("no call but {other:?}"),
        }
    }

    /// Whether nothing was sent by now.
    pub(crate) fn has_nothing(&mut self) -> bool {
        self.commands.try_recv().is_err()
    }

    /// Loses the socket.
    pub(crate) fn lose(self) {
        self.driver.close_socket(self.socket);
    }
}
