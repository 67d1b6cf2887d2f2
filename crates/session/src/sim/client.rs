//! Clients as they are in the field.

use serde_json::{Value, json};

use super::rng::Rng;
use super::{Happening, Link, World, token};
use crate::{Input, SocketId};

use super::judge::Seen;

/// How a program behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Profile {
    /// Reads no answers; after an automatic reconnect it does not register again.
    Thin,
    /// Comes back with the same uid every few seconds, before or after it has dropped the old
    /// socket, and opens sockets that never register.
    Server,
    /// Behaves well.
    Plain,
    /// Wants to be somebody else: the same uid with another token, kind or base.
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
    /// Counts its restarts; also its pid.
    pub(super) process: u32,
    /// Whether this process has registered yet.
    registered: bool,
    /// Answers that it could not send.
    backlog: Vec<String>,
    /// How often in a hundred a call is lost inside it.
    deaf: u64,
    /// The longest that a call takes.
    slow: u64,
    tries: u32,
}

/// The tools that there are. `wide` takes three calls at once, `pair` two.
pub(super) const TOOLS: [&str; 5] = ["find", "query", "Провести", "wide", "pair"];

pub(super) fn population(rng: &mut Rng) -> Vec<Client> {
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
        rng: &mut Rng,
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

    fn register(&self, rng: &mut Rng) -> String {
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
        request(rng.next(), "session.register", &params)
    }
}

fn some_tools(rng: &mut Rng) -> Vec<&'static str> {
    let mut tools: Vec<&'static str> = TOOLS.into_iter().filter(|_| rng.chance(55)).collect();
    if tools.is_empty() {
        tools.push("find");
    }
    tools
}

/// `query` has another schema for each kind.
fn definitions(tools: &[&str], kind: &str) -> Value {
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

fn request(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

fn notification(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

impl World {
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

    fn open(&mut self, index: usize) -> Result<SocketId, String> {
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
        self.gate_sees(Input::Opened { socket, token: token(id) }, &Seen::Opened(socket, id))?;
        Ok(socket)
    }

    fn register(&mut self, index: usize, socket: SocketId) {
        let client = &mut self.clients[index];
        client.registered = true;
        let text = client.register(&mut self.rng);
        if self.rng.chance(8) {
            self.say(socket, text.clone());
        }
        self.say(socket, text);
    }

    /// A client sends a frame, and the network does with it what it does.
    fn say(&mut self, socket: SocketId, text: String) {
        if let Some(wait) = self.delay(socket, true) {
            self.plan(wait, Happening::ToGate(socket, text));
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
        self.plan(wait, Happening::Finish { client: index, process, wire, tag });
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
            // A client that has lost count.
            answer["id"] = json!(format!("mgr-{}-{:032x}", self.rng.below(500), self.rng.wide()));
        }
        let answer = answer.to_string();
        match client.socket {
            Some(socket) => {
                if self.rng.chance(5) {
                    self.say(socket, answer.clone());
                }
                self.say(socket, answer.clone());
                if self.rng.chance(3) {
                    self.forge(index, answer);
                }
            }
            None => self.clients[index].backlog.push(answer),
        }
    }

    /// The same answer from a socket that was not asked: one of its own, or one of a program with
    /// another token. (With the same token and the full id it could only be the program itself.)
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
            self.plan(wait, Happening::Connect(index));
        }
    }

    pub(super) fn whim(&mut self, index: usize) -> Result<(), String> {
        if !self.is_alive() {
            return Ok(());
        }
        let server = self.clients[index].profile == Profile::Server;
        let next = if server { 4_000 } else { 12_000 };
        let wait = 200 + self.rng.below(next);
        self.plan(wait, Happening::Whim(index));
        let Some(socket) = self.clients[index].socket else { return Ok(()) };
        match self.rng.below(if server { 14 } else { 10 }) {
            0 => self.change_tools(index, socket),
            1 => self.bye(socket),
            2 => self.restart_client(index, socket),
            3 => self.break_link(socket, true),
            4 => self.break_link(socket, false),
            5 => self.say(socket, request(1, "ping", &Value::Null)),
            6 => self.speak_oddly(index, socket),
            7 => {
                // A probe that never registers.
                self.open(index)?;
            }
            8 => self.answer_elsewhere(index)?,
            _ if server => self.come_back(index, socket)?,
            _ => {}
        }
        Ok(())
    }

    fn change_tools(&mut self, index: usize, socket: SocketId) {
        let tools = some_tools(&mut self.rng);
        let client = &mut self.clients[index];
        client.tools = tools;
        let params = json!({"tools": definitions(&client.tools, client.kind)});
        let text = if self.rng.chance(50) {
            request(2, "session.tools_changed", &params)
        } else {
            notification("session.tools_changed", &params)
        };
        self.say(socket, text);
    }

    fn bye(&mut self, socket: SocketId) {
        let text = if self.rng.chance(50) {
            request(3, "session.bye", &json!({"reason": "closing"}))
        } else {
            notification("session.bye", &Value::Null)
        };
        self.say(socket, text);
        let index = self.links[&socket].client;
        self.clients[index].registered = false;
    }

    /// The program ends and is started again: what it ran is lost.
    fn restart_client(&mut self, index: usize, socket: SocketId) {
        let client = &mut self.clients[index];
        client.process += 1;
        client.registered = false;
        client.backlog.clear();
        client.socket = None;
        let back = self.rng.below(6_000);
        self.plan(back, Happening::Connect(index));
        let clean = self.rng.chance(60);
        self.break_link(socket, clean);
    }

    fn break_link(&mut self, socket: SocketId, clean: bool) {
        let Some(link) = self.links.get_mut(&socket) else { return };
        link.half_open = !clean;
        let notices = self.rng.below(if clean { 600 } else { 5_000 });
        self.plan(notices, Happening::ClientHangs(socket));
        if clean && let Some(wait) = self.delay(socket, true) {
            self.plan(wait, Happening::GateHangs(socket));
        }
    }

    fn speak_oddly(&mut self, index: usize, socket: SocketId) {
        let text = match self.rng.below(4) {
            0 => "not json".to_owned(),
            1 => request(4, "session.unknown", &Value::Null),
            2 => self.clients[index].register(&mut self.rng),
            _ => notification("notifications/odd", &Value::Null),
        };
        self.say(socket, text);
    }

    /// A second socket of the same program that has not registered, as thin clients have after a
    /// reconnect; what was finished meanwhile is said there.
    fn answer_elsewhere(&mut self, index: usize) -> Result<(), String> {
        let old = self.clients[index].socket;
        let new = self.open(index)?;
        self.clients[index].socket = Some(new);
        if let Some(old) = old {
            let clean = self.rng.chance(70);
            self.break_link(old, clean);
        }
        Ok(())
    }

    /// A server channel comes back, often before its old socket is gone, on which it may still talk.
    fn come_back(&mut self, index: usize, old: SocketId) -> Result<(), String> {
        let new = self.open(index)?;
        self.clients[index].socket = Some(new);
        self.register(index, new);
        if self.rng.chance(40) {
            self.change_tools(index, old);
        }
        if self.rng.chance(30) {
            self.say(old, request(5, "ping", &Value::Null));
        }
        if self.rng.chance(10) {
            self.say(old, request(6, "session.bye", &Value::Null));
        }
        if self.rng.chance(60) {
            let clean = self.rng.chance(80);
            self.break_link(old, clean);
        }
        Ok(())
    }
}
