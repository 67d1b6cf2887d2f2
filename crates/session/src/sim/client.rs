//! Clients that behave like real ones.

use serde_json::{Value, json};
use toolgate_dice::Dice;

use super::{Link, ScheduledEvent, Simulation, token};
use crate::{Input, SocketId};

use super::checker::Observed;

/// How a program behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Profile {
    /// Reads no responses; after an automatic reconnect it does not register again.
    Thin,
    /// Reconnects with the same uid every few seconds, before or after it has dropped the old
    /// socket, and opens sockets that never register.
    Server,
    /// Behaves well.
    Plain,
    /// Impersonates another program: the same uid with another token, kind or infobase.
    Impostor,
}

/// One program, through all its restarts.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) profile: Profile,
    pub(super) uid: &'static str,
    pub(super) kind: &'static str,
    pub(super) base: &'static str,
    pub(super) token: Option<u32>,
    pub(super) tools: Vec<&'static str>,
    pub(super) socket: Option<SocketId>,
    /// The number of its restarts; also its pid.
    pub(super) process: u32,
    /// Whether this process has registered yet.
    pub(super) registered: bool,
    /// Answers that it could not send.
    pub(super) backlog: Vec<String>,
    /// The percentage of calls that it loses.
    deaf: u64,
    /// The maximum duration of a call.
    slow: u64,
    tries: u32,
}

/// The tools that there are. `wide` takes three calls at once, `pair` two.
pub(super) const TOOLS: [&str; 5] = ["find", "query", "Провести", "wide", "pair"];

pub(super) fn population(rng: &mut Dice) -> Vec<Client> {
    let mut clients = Vec::new();
    let cast = [
        (Profile::Thin, "thin-1", "client", "trade", Some(1)),
        (Profile::Thin, "thin-2", "client", "bp", Some(1)),
        (Profile::Server, "server-trade", "server", "trade", Some(1)),
        (Profile::Plain, "test-1", "test", "trade", Some(2)),
        (Profile::Server, "server-bp", "server", "bp", Some(2)),
    ];
    for (profile, uid, kind, base, token) in cast {
        if rng.chance(75) {
            clients.push(Client::new(rng, profile, uid, kind, base, token));
        }
    }
    if rng.chance(60) || clients.is_empty() {
        let (uid, kind, base) = rng.pick(&[
            ("thin-1", "client", "trade"),
            ("server-trade", "server", "trade"),
            ("server-trade", "server", "bp"),
            ("test-1", "client", "trade"),
        ]);
        let token = rng.pick(&[Some(1), Some(2), Some(3)]);
        clients.push(Client::new(rng, Profile::Impostor, uid, kind, base, token));
    }
    clients
}

impl Client {
    fn new(
        rng: &mut Dice,
        profile: Profile,
        uid: &'static str,
        kind: &'static str,
        base: &'static str,
        token: Option<u32>,
    ) -> Self {
        Self {
            profile,
            uid,
            kind,
            base,
            token,
            tools: some_tools(rng),
            socket: None,
            process: 1,
            registered: false,
            backlog: Vec::new(),
            deaf: rng.pick(&[0, 0, 5, 15]),
            slow: rng.pick(&[300, 2_000, 8_000, 25_000]),
            tries: 0,
        }
    }

    pub(super) fn register(&self, rng: &mut Dice) -> String {
        let mut params = json!({
            "client_uid": self.uid,
            "kind": self.kind,
            "version": "1.0",
            "infobase_name": self.base,
            "ib_session_number": self.process,
            "host_id": format!("host-{:?}", self.profile),
            "tools": definitions(&self.tools, self.kind),
        });
        if self.profile != Profile::Server {
            params["pid"] = self.process.into();
        }
        if rng.chance(3) {
            params["client_uid"] = "".into();
        }
        request(rng.roll(), "session.register", &params)
    }
}

pub(super) fn some_tools(rng: &mut Dice) -> Vec<&'static str> {
    let mut tools: Vec<&'static str> = TOOLS.into_iter().filter(|_| rng.chance(55)).collect();
    if tools.is_empty() {
        tools.push("find");
    }
    tools
}

/// `query` has another schema for each kind.
pub(super) fn definitions(tools: &[&str], kind: &str) -> Value {
    let definition = |name: &&str| {
        let mut tool = json!({"name": name, "input_schema": {"type": "object", "properties": {"tag": {"type": "integer"}}}});
        match *name {
            "wide" => tool["concurrency"] = 3.into(),
            "pair" => tool["concurrency"] = 2.into(),
            "query" => tool["input_schema"]["properties"][kind] = json!({"type": "string"}),
            _ => {}
        }
        tool
    };
    tools.iter().map(definition).collect()
}

pub(super) fn request(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

pub(super) fn notification(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

impl Simulation {
    pub(super) fn connect(&mut self, index: usize) -> Result<(), String> {
        if self.clients[index].socket.is_some() || !self.is_alive() {
            return Ok(());
        }
        let socket = self.open(index)?;
        let client = &mut self.clients[index];
        client.socket = Some(socket);
        client.tries = 0;
        let backlog = std::mem::take(&mut client.backlog);
        let registers = client.profile.registers_again() || !client.registered;
        if registers && !(client.profile == Profile::Server && self.rng.chance(5)) {
            self.register(index, socket);
        }
        for answer in backlog {
            self.say(socket, answer);
        }
        Ok(())
    }

    pub(super) fn open(&mut self, index: usize) -> Result<SocketId, String> {
        self.sockets += 1;
        let socket = SocketId(self.sockets);
        let client = &self.clients[index];
        let link = Link {
            client: index,
            process: client.process,
            half_open: false,
            closed: false,
            up: self.now,
            down: self.now,
            slowness: self.rng.pick(&[20, 200, 1_500]),
        };
        let id = client.token;
        self.links.insert(socket, link);
        self.gate_sees(
            Input::Opened { socket, token: token(id), peer: None },
            &Observed::Opened(socket, id),
        )?;
        Ok(socket)
    }

    pub(super) fn register(&mut self, index: usize, socket: SocketId) {
        let client = &mut self.clients[index];
        client.registered = true;
        let text = client.register(&mut self.rng);
        if self.rng.chance(8) {
            self.say(socket, text.clone());
        }
        self.say(socket, text);
    }

    /// A client sends a frame over the faulty network.
    pub(super) fn say(&mut self, socket: SocketId, text: String) {
        if let Some(wait) = self.delay(socket, true) {
            self.plan(wait, ScheduledEvent::ToGate(socket, text));
        }
    }

    pub(super) fn client_hears(&mut self, socket: SocketId, text: &str) {
        let Some(link) = self.links.get(&socket) else { return };
        let (index, process) = (link.client, link.process);
        let client = &self.clients[index];
        let frame: Value = serde_json::from_str(text).unwrap();
        if process != client.process || frame["method"] != "tool.call" {
            return;
        }
        if self.rng.chance(client.deaf) {
            return;
        }
        let wire = frame["id"].as_str().unwrap().to_owned();
        let tag = frame["params"]["arguments"]["tag"].as_u64().unwrap_or_default();
        let wait = self.rng.below(client.slow);
        self.plan(wait, ScheduledEvent::Finish { client: index, process, wire, tag });
    }

    pub(super) fn finish(&mut self, index: usize, process: u32, wire: &str, tag: u64) {
        let client = &self.clients[index];
        if client.process != process {
            return;
        }
        let text = format!("{tag}@{}", client.uid);
        let mut answer = if self.rng.chance(90) {
            json!({"jsonrpc": "2.0", "id": wire, "result": {"content": [{"type": "text", "text": text}]}})
        } else {
            json!({"jsonrpc": "2.0", "id": wire, "error": {"code": -32000, "message": text}})
        };
        if self.rng.chance(2) {
            // A client that has lost track.
            answer["id"] = json!(format!("mgr-{}-{:032x}", self.rng.below(500), self.rng.wide()));
        }
        let answer = answer.to_string();
        if let Some(socket) = client.socket {
            if self.rng.chance(5) {
                self.say(socket, answer.clone());
            }
            self.say(socket, answer.clone());
            if self.rng.chance(3) {
                self.forge(index, answer);
            }
        } else {
            if self.rng.chance(20) {
                self.forge(index, answer.clone());
            }
            self.clients[index].backlog.push(answer);
        }
    }

    /// The same answer from a socket that did not receive the call: one of its own, or one of a
    /// program with another token. (With the same token and the full id it could only be the
    /// program itself.)
    fn forge(&mut self, index: usize, answer: String) {
        let token = self.clients[index].token;
        let may = |link: &Link| {
            !link.closed && (link.client == index || self.clients[link.client].token != token)
        };
        let sockets: Vec<SocketId> =
            self.links.iter().filter(|(_, link)| may(link)).map(|(id, _)| *id).collect();
        if !sockets.is_empty() {
            let socket = self.rng.pick(&sockets);
            self.say(socket, answer);
        }
    }

    pub(super) fn client_hangs(&mut self, socket: SocketId) {
        let Some(link) = self.links.get(&socket) else { return };
        let index = link.client;
        let client = &mut self.clients[index];
        if client.socket == Some(socket) {
            client.socket = None;
            client.tries = (client.tries + 1).min(5);
            let wait = self.rng.below(500 << client.tries);
            self.plan(wait, ScheduledEvent::Connect(index));
        }
    }
}
