//! One agent of a thousand: its calls, its moods, and the check of every answer.

use serde_json::{Value, json};
use toolgate_dice::Dice;
use toolgate_testkit::client::{Answer, Connection};

/// One in so many calls is cancelled, and one in so many is hung up on.
const MOODS: u64 = 20;

/// How calls ended.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    /// With the right answer.
    pub(crate) answered: u64,
    /// With a failure because too many calls wait for the child.
    pub(crate) failed: u64,
    /// Cancelled, answered or not.
    pub(crate) cancelled: u64,
    /// Hung up on.
    pub(crate) hung_up: u64,
}

/// How a server is reached.
#[derive(Clone, Copy)]
pub(crate) struct Server {
    /// Its endpoint.
    pub(crate) path: &'static str,
    /// What its `echo` is called there.
    pub(crate) tool: &'static str,
    /// Whether its `echo` gives back all its arguments, and not their `text` alone.
    pub(crate) gives_all: bool,
}

/// With or without a handshake.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

/// An agent.
pub(crate) struct Client {
    address: String,
    server: Server,
    era: Era,
    number: u64,
    seed: u64,
    dice: Dice,
    session: String,
    tally: Tally,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Self) {
        self.answered += other.answered;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
        self.hung_up += other.hung_up;
    }
}

impl Client {
    pub(crate) fn new(address: String, server: Server, era: Era, number: u64, seed: u64) -> Self {
        let dice = Dice::new(seed.wrapping_mul(31).wrapping_add(number));
        Self {
            address,
            server,
            era,
            number,
            seed,
            dice,
            session: String::new(),
            tally: Tally::default(),
        }
    }

    /// Calls until so many answers have come.
    pub(crate) async fn run(mut self, answers: u64) -> Tally {
        let mut connection = self.open().await;
        let mut id = 0;
        while self.tally.answered < answers {
            let mark = format!("{:x}/{}/{id}", self.seed, self.number);
            connection.send(&self.call(id, &mark)).await.unwrap();
            if self.dice.one_in(MOODS) {
                // Perhaps before the call was even read.
                connection = Connection::open(&self.address).await.unwrap();
                self.tally.hung_up += 1;
            } else {
                let cancels = self.dice.one_in(MOODS);
                if cancels {
                    self.cancel(id).await;
                }
                let answer = connection.receive().await.unwrap();
                self.check(&answer, id, &mark, cancels);
            }
            id += 1;
        }
        if self.era == Era::Legacy {
            connection.send(&self.head("DELETE", "", 0)).await.unwrap();
            assert_eq!(connection.receive().await.unwrap().status, 200);
        }
        self.tally
    }

    async fn open(&mut self) -> Connection {
        let mut connection = Connection::open(&self.address).await.unwrap();
        if self.era == Era::Modern {
            return connection;
        }
        let about = json!({"name": "misroute", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about});
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        connection.send(&self.post("initialize", &body.to_string())).await.unwrap();
        let answer = connection.receive().await.unwrap();
        self.session = answer.session.clone().unwrap_or_else(|| panic!("not opened: {answer:?}"));
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        connection.send(&self.post("notifications/initialized", ready)).await.unwrap();
        assert_eq!(connection.receive().await.unwrap().status, 202);
        connection
    }

    fn call(&self, id: u64, mark: &str) -> String {
        let tool = self.server.tool;
        let meta = match self.era {
            Era::Legacy => "",
            Era::Modern => {
                r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#
            }
        };
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"text":"{mark}"}}{meta}}}}}"#
        );
        self.post("tools/call", &body)
    }

    async fn cancel(&mut self, id: u64) {
        self.tally.cancelled += 1;
        let mut connection = Connection::open(&self.address).await.unwrap();
        let body = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        );
        connection.send(&self.post("notifications/cancelled", &body)).await.unwrap();
        assert_eq!(connection.receive().await.unwrap().status, 202);
    }

    /// Whatever came is this call's, and it came once.
    fn check(&mut self, answer: &Answer, id: u64, mark: &str, cancelled: bool) {
        assert_eq!(answer.status, 200, "{answer:?}");
        let message = match answer.messages.as_slice() {
            [message] => message,
            [] if cancelled => return,
            _ => panic!("{mark} had {answer:?}"),
        };
        let message: Value = serde_json::from_str(message).unwrap();
        assert_eq!(message["id"], id, "{mark} got {message}");
        let result = &message["result"];
        let kind = if self.era == Era::Modern { json!("complete") } else { Value::Null };
        assert_eq!(result["resultType"], kind, "{mark} got {message}");
        if result["isError"] == true {
            let meta = &result["_meta"];
            assert_eq!(meta["error_code"], "upstream_unavailable", "{mark} got {message}");
            self.tally.failed += 1;
            return;
        }
        let expected =
            if self.server.gives_all { format!(r#"{{"text":"{mark}"}}"#) } else { mark.to_owned() };
        assert_eq!(result["content"][0]["text"], expected, "{mark} got {message}");
        self.tally.answered += 1;
    }

    fn post(&self, method: &str, body: &str) -> String {
        format!("{}{body}", self.head("POST", method, body.len()))
    }

    /// The identification in its requests. Of those without a session every other one has its own
    /// standing session, and the rest share one.
    fn about(&self, method: &str) -> String {
        let Self { session, number, server: Server { tool, .. }, .. } = self;
        if self.era == Era::Legacy {
            let session = Some(session).filter(|session| !session.is_empty());
            return session.map_or_else(String::new, |it| format!("Mcp-Session-Id: {it}\r\n"));
        }
        let name = match method {
            "tools/call" => format!("Mcp-Name: {tool}\r\n"),
            _ => String::new(),
        };
        let own = match number % 2 {
            0 => format!("Toolgate-Session: client-{number}\r\n"),
            _ => String::new(),
        };
        format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}{own}")
    }

    fn head(&self, method: &str, what: &str, length: usize) -> String {
        let Self { address, server: Server { path, .. }, .. } = self;
        let session = self.about(what);
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{session}\
             Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n"
        )
    }
}
