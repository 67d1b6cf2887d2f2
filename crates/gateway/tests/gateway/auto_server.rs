//! Servers that answer from a table and record everything else.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::script::{Connect, Kind, Line, Peer, Script, Sent};

/// A server that answers each method with a set result. What it has no answer to waits.
#[derive(Clone)]
pub(crate) struct AutoServer {
    script: Arc<Script>,
    results: Arc<Mutex<HashMap<String, String>>>,
    received: Arc<Mutex<Vec<String>>>,
    waiting: Arc<Mutex<Vec<Sent>>>,
    /// Tells the newest of its lines what to say.
    voice: Arc<Mutex<Option<tokio::sync::mpsc::UnboundedSender<RawText>>>>,
}

#[derive(Debug)]
enum RawText {
    Say(String),
    BreakOff,
}

const WELCOME: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"resources":{"subscribe":true},"completions":{},"logging":{}},"serverInfo":{"name":"s","version":"1"},"instructions":"be kind"}"#;

impl AutoServer {
    /// A server with these tools, whose every other list is empty.
    pub(crate) fn with_tools(tools: &[&str]) -> Self {
        Self::welcoming(WELCOME, tools)
    }

    pub(crate) fn welcoming(welcome: &str, tools: &[&str]) -> Self {
        Self::playing(Peer::with_welcome(Kind::Child, Some(welcome)), tools)
    }

    /// The same over another kind of channel.
    pub(crate) fn over(kind: Kind, tools: &[&str]) -> Self {
        Self::playing(Peer::with_welcome(kind, Some(WELCOME)), tools)
    }

    /// A server of protocol 2026-07-28.
    pub(crate) fn modern(discover: &str, tools: &[&str]) -> Self {
        Self::modern_over(Kind::Http, discover, tools)
    }

    /// The same over another kind of channel.
    pub(crate) fn modern_over(kind: Kind, discover: &str, tools: &[&str]) -> Self {
        Self::playing(Peer::modern(kind, discover), tools)
    }

    fn playing(peer: Peer, tools: &[&str]) -> Self {
        let auto_server = Self {
            script: peer.connector(),
            results: Arc::default(),
            received: Arc::default(),
            waiting: Arc::default(),
            voice: Arc::default(),
        };
        auto_server.set_tools(tools);
        auto_server.set("prompts/list", r#"{"prompts":[]}"#);
        auto_server.set("resources/list", r#"{"resources":[]}"#);
        auto_server.set("resources/templates/list", r#"{"resourceTemplates":[]}"#);
        tokio::spawn(auto_server.clone().play(peer));
        auto_server
    }

    pub(crate) fn connector(&self) -> Arc<Script> {
        Arc::clone(&self.script)
    }

    pub(crate) fn set(&self, method: &str, result: &str) {
        self.results.lock().insert(method.to_owned(), result.to_owned());
    }

    /// Does not answer this any more.
    pub(crate) fn unset(&self, method: &str) {
        self.results.lock().remove(method);
    }

    pub(crate) fn set_tools(&self, tools: &[&str]) {
        let tools: Vec<_> = tools.iter().map(|name| format!(r#"{{"name":"{name}"}}"#)).collect();
        self.set("tools/list", &format!(r#"{{"tools":[{}]}}"#, tools.join(",")));
    }

    /// Says something that belongs to no exchange.
    pub(crate) fn say(&self, body: &str) {
        self.tell(RawText::Say(body.to_owned()));
    }

    /// Goes away, and refuses the next attempts.
    pub(crate) fn die(&self, attempts: usize) {
        for _ in 0..attempts {
            let error = toolgate_gateway::channel::SendError::NotSent("no such program".to_owned());
            self.script.plan(Connect::Refuse(error));
        }
        self.tell(RawText::BreakOff);
    }

    /// Goes away.
    pub(crate) fn break_off(&self) {
        self.tell(RawText::BreakOff);
    }

    /// Everything it was sent since this was last asked, but for lists.
    pub(crate) fn received(&self) -> Vec<String> {
        std::mem::take(&mut *self.received.lock())
    }

    /// The oldest request of this method that waits for its answer.
    pub(crate) async fn waiting(&self, method: &str) -> Sent {
        loop {
            {
                let mut waiting = self.waiting.lock();
                if let Some(index) = waiting.iter().position(|sent| sent.method() == method) {
                    return waiting.remove(index);
                }
            }
            crate::script::settle().await;
        }
    }

    fn tell(&self, word: RawText) {
        let voice = self.voice.lock();
        voice.as_ref().expect("nobody has connected").send(word).expect("the line is gone");
    }

    async fn play(self, mut peer: Peer) {
        while let Some(line) = peer.next_line().await {
            let (tell, words) = tokio::sync::mpsc::unbounded_channel();
            *self.voice.lock() = Some(tell);
            tokio::spawn(self.clone().play_line(line, words));
        }
    }

    async fn play_line(
        self,
        mut line: Line,
        mut words: tokio::sync::mpsc::UnboundedReceiver<RawText>,
    ) {
        loop {
            let sent = tokio::select! {
                sent = line.next_or_end() => sent,
                // A newer line may have taken the voice over; this one still answers.
                Some(word) = words.recv() => {
                    match word {
                        RawText::Say(body) => drop(line.say(&body)),
                        RawText::BreakOff => line.break_off("the process ended"),
                    }
                    continue;
                }
            };
            let Some(sent) = sent else { return };
            if sent.part(&["method"]).is_none() {
                self.received.lock().push(sent.body.clone());
                continue;
            }
            let method = sent.method();
            if !method.ends_with("/list") {
                self.received.lock().push(sent.body.clone());
            }
            let result = self.results.lock().get(&method).cloned();
            match (sent.part(&["id"]), result) {
                (Some(_), Some(result)) => sent.answer(&result),
                (Some(_), None) => self.waiting.lock().push(sent),
                (None, _) => {}
            }
        }
    }
}
