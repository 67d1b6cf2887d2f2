//! What clients do unprompted, and what happens to them.

use serde_json::{Value, json};

use super::client::{Profile, definitions, notification, request, some_tools};
use super::{ScheduledEvent, Simulation};
use crate::SocketId;

impl Simulation {
    pub(super) fn misbehave(&mut self, index: usize) -> Result<(), String> {
        if !self.is_alive() {
            return Ok(());
        }
        let server = self.clients[index].profile == Profile::Server;
        let next = if server { 4_000 } else { 12_000 };
        let wait = 200 + self.rng.below(next);
        self.plan(wait, ScheduledEvent::Whim(index));
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

    /// The program exits and is started again: its running calls are lost.
    fn restart_client(&mut self, index: usize, socket: SocketId) {
        let client = &mut self.clients[index];
        client.process += 1;
        client.registered = false;
        client.backlog.clear();
        client.socket = None;
        let back = self.rng.below(6_000);
        self.plan(back, ScheduledEvent::Connect(index));
        let clean = self.rng.chance(60);
        self.break_link(socket, clean);
    }

    fn break_link(&mut self, socket: SocketId, clean: bool) {
        let Some(link) = self.links.get_mut(&socket) else { return };
        link.half_open = !clean;
        let notices = self.rng.below(if clean { 600 } else { 5_000 });
        self.plan(notices, ScheduledEvent::ClientHangs(socket));
        if clean && let Some(wait) = self.delay(socket, true) {
            self.plan(wait, ScheduledEvent::GateHangs(socket));
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

    /// A second, unregistered socket of the same program, as thin clients have after a reconnect;
    /// finished answers are sent there.
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

    /// A server channel reconnects, often before its old socket is closed, on which it may still
    /// send.
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
