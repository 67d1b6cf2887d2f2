//! Lists of sessions: `session_list` for agents, and the operator's list with more details.

use std::sync::Arc;

use serde_json::{Value, json};

use toolgate_json::object::members;

use crate::arguments::Arguments;
use crate::entry::ShowcaseEntry;
use crate::failure::SessionFailure;
use crate::io::{Output, Outputs, SocketId};
use crate::machine::{Session, SessionMachine, SocketOwner};
use crate::reach::Reach;
use crate::time::Millis;

/// Numbers of sockets, sessions and calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionCounts {
    /// Open sockets.
    pub sockets: usize,
    /// Sockets without a registered session.
    pub anonymous: usize,
    /// Sessions.
    pub sessions: usize,
    /// Sessions without a socket.
    pub disconnected: usize,
    /// Queued calls.
    pub queued: usize,
    /// Calls that were sent and are awaited.
    pub inflight: usize,
}

/// Advice about a socket that does not register.
const ANONYMOUS: &str = "this program has connected and not registered: if it is a 1C client whose connection was lost, restart its MCP mode or the client, so that it registers again";

impl SessionMachine {
    /// The result of the built-in `session_list`, without anonymous sockets.
    pub fn session_list(&self, reach: &Reach, now: Millis) -> Value {
        let reachable = |(uid, _): &(&Arc<str>, &Session)| self.reachable(uid, reach).is_some();
        let sessions = self.by_uid.iter().filter(reachable);
        let sessions: Vec<Value> = sessions.map(|(uid, session)| item(uid, session, now)).collect();
        json!({ "sessions": sessions })
    }

    /// The operator's list: the same items with their problems, and anonymous sockets.
    pub fn operator_list(&self, now: Millis) -> Value {
        let sessions: Vec<Value> = self
            .by_uid
            .iter()
            .map(|(uid, session)| {
                let mut item = item(uid, session, now);
                if let Some(item) = item.as_object_mut() {
                    let conflict = session.in_conflict(now).then(|| {
                        json!([session.rival.as_deref().unwrap_or("unknown"), session.card.host_id])
                    });
                    item.insert("conflict".to_owned(), conflict.unwrap_or_default());
                    item.insert("unresponsive".to_owned(), session.is_unresponsive().into());
                    item.insert("hidden".to_owned(), session.hidden.into());
                    item.insert("generation".to_owned(), session.generation.into());
                    item.insert("cluster_server".to_owned(), json!(session.card.cluster_server));
                }
                item
            })
            .collect();
        let anonymous: Vec<Value> = self
            .sockets
            .iter()
            .filter(|(_, socket)| socket.bond == SocketOwner::Anonymous)
            .map(|(id, socket)| {
                json!({
                    "socket": id.0,
                    "peer": socket.peer.map(|peer| peer.to_canonical().to_string()),
                    "opened_secs_ago": now.secs_since(socket.opened),
                    "what_to_do": ANONYMOUS,
                })
            })
            .collect();
        json!({ "sessions": sessions, "anonymous": anonymous })
    }

    /// Whether no session has registered on a socket.
    pub fn is_anonymous(&self, socket: SocketId) -> bool {
        self.sockets.get(&socket).is_some_and(|socket| socket.bond == SocketOwner::Anonymous)
    }

    /// The numbers for metrics.
    pub fn counts(&self) -> SessionCounts {
        let sessions = || self.by_uid.values();
        let anonymous =
            self.sockets.values().filter(|socket| socket.bond == SocketOwner::Anonymous);
        SessionCounts {
            sockets: self.sockets.len(),
            anonymous: anonymous.count(),
            sessions: self.by_uid.len(),
            disconnected: sessions().filter(|session| session.socket.is_none()).count(),
            queued: sessions().map(|session| session.queue.len()).sum(),
            inflight: sessions().map(Session::inflight).sum(),
        }
    }

    /// The built-in `tools_cache_reset`: removes what the grant may see of the showcase.
    pub fn tools_cache_reset(
        &mut self,
        arguments: Option<&str>,
        reach: &Reach,
        now: Millis,
    ) -> Result<(Value, Outputs), SessionFailure> {
        let config_id = Arguments::read(arguments)?.selector("config_id")?;
        let others = arguments.and_then(|raw| members(raw).ok()).unwrap_or_default();
        if let Some(other) = others.iter().find(|member| !member.is("config_id")) {
            let what = format!("unknown argument {}", other.raw_key);
            return Err(SessionFailure::InvalidArguments { what });
        }
        self.now = self.now.max(now);
        let removed = self.showcase.reset(config_id.as_deref(), reach);
        let result = json!({
            "removed": removed.len(),
            "scope": if config_id.is_some() { "by_config_id" } else { "all" },
            "enabled": self.settings.showcase,
        });
        for key in removed {
            self.push(Output::Forget(key));
            self.lists_may_differ();
        }
        self.time_showcase();
        Ok((result, self.done()))
    }

    /// The showcase, for export.
    pub fn showcase(&self) -> impl Iterator<Item = &Arc<ShowcaseEntry>> {
        self.showcase.all()
    }
}

fn item(uid: &Arc<str>, session: &Session, now: Millis) -> Value {
    let ago = |at: Option<Millis>| at.map(|at| now.secs_since(at));
    let card = &session.card;
    json!({
        "session_id": &**uid,
        "kind": card.kind,
        "config_id": card.config_id,
        "version": card.version,
        "infobase_name": card.infobase_name,
        "ib_session_number": card.ib_session_number,
        "host_id": card.host_id,
        "pid": card.pid,
        "state": if session.socket.is_some() { "active" } else { "disconnected" },
        "tools": session.tools.len(),
        "inflight": session.inflight(),
        "queued": session.queue.len(),
        "last_call_secs_ago": ago(session.last_call),
        "last_answer_secs_ago": ago(session.last_answer),
        "registered_secs_ago": now.secs_since(session.registered_at),
        "disconnected_secs_ago": ago(session.lost_at),
    })
}
