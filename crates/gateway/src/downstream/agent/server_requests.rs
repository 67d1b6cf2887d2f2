//! Requests of servers to the agent, and its responses.
//!
//! Invariant: a response reaches the server that sent the request, once; a response without a request
//! reaches no server. A server that is frozen for the agent, or out of its reach, receives an error
//! instead.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use tokio::time::Instant;
use toolgate_admission::clearance::Closed;
use toolgate_json::quote;
use toolgate_mcp::{Payload, Response, method, write};
use toolgate_upstream::event_buffer::EventBuffer;
use toolgate_upstream::link::{Link, Requester, ServerRequest};
use toolgate_upstream::rewrite::rewrite;
use toolgate_upstream::tasks;

use super::AgentSession;

/// The maximum number of pending requests of servers.
const MAX_ASKED: usize = 1_000;

impl AgentSession {
    /// Forwards the agent's response to a request of a server.
    pub async fn respond(&self, response: &Response<'_>) {
        self.touch();
        let number = response.id.and_then(|id| id.parse().ok());
        let asked = number.and_then(|number| self.asked.lock().remove(&number));
        let (Some(asked), Some(id)) = (asked, response.id) else {
            tracing::debug!(endpoint = %self.endpoint, "agent response without a pending request dropped");
            return;
        };
        let result = || match response.payload {
            Payload::Result(result) => Some(result.to_owned()),
            Payload::Error(_) => None,
        };
        if let Requester::Hold(tell) = asked.requester {
            drop(tell.send(result()));
            return;
        }
        let Some(link) = asked.link.upgrade() else { return };
        link.server_request_done();
        match asked.requester {
            Requester::Call { key, tell } => drop(tell.send((key, result()))),
            Requester::Hold(_) => {}
            Requester::Server { id: theirs, .. } => {
                let server = link.server().name();
                if let Some(why) = self.admission.answer_denied(&self.grant(), server) {
                    return link.refuse_server(&theirs, &why);
                }
                let task = match response.payload {
                    Payload::Result(result) => tasks::related_if_known(self, server, result),
                    Payload::Error(_) => None,
                };
                let task = task.map(|(part, own)| (part, quote(&own)));
                let mut changes = vec![(id, &*theirs)];
                changes.extend(task.as_ref().map(|(part, own)| (*part, own.as_str())));
                if link.is_up_in(asked.epoch)
                    && let Ok(body) = rewrite(response.raw, &changes)
                {
                    self.pass_on(link, body, Closed::answer()).await;
                }
            }
        }
    }

    /// Adds a server's request; the number is its id towards the agent. `None` if too many are
    /// pending.
    pub(crate) fn ask(&self, asked: ServerRequest) -> Option<u64> {
        let mut all = self.asked.lock();
        if all.len() >= MAX_ASKED {
            return None;
        }
        let number = self.next_asked.fetch_add(1, Ordering::Relaxed);
        all.insert(number, asked);
        Some(number)
    }

    /// Ends requests whose time is up; their servers continue without an answer.
    pub(crate) fn end_late_server_requests(&self, now: Instant) {
        let late: Vec<_> = self.asked.lock().extract_if(|_, asked| asked.until <= now).collect();
        for (number, asked) in late {
            let params = format!(r#"{{"requestId":{number},"reason":"no answer in time"}}"#);
            asked.buffer.push(write::notification(method::CANCELLED, Some(&params)));
            let Some(link) = asked.link.upgrade() else { continue };
            link.server_request_done();
            match asked.requester {
                Requester::Call { key, tell } => drop(tell.send((key, None))),
                Requester::Server { id, .. } => link.answer_late(&id),
                Requester::Hold(_) => {}
            }
        }
    }

    /// The server withdraws its request `id`: its number and stream towards the agent.
    pub(crate) fn withdraw_server_request(
        &self,
        link: &Weak<Link>,
        id: &str,
    ) -> Option<(u64, Arc<EventBuffer>)> {
        let mut all = self.asked.lock();
        let is_meant = |asked: &ServerRequest| {
            let is_its =
                matches!(&asked.requester, Requester::Server { id: theirs, .. } if **theirs == *id);
            is_its && asked.link.ptr_eq(link)
        };
        let number = all.iter().find_map(|(number, asked)| is_meant(asked).then_some(*number))?;
        all.remove(&number).map(|asked| (number, asked.buffer))
    }

    /// Removes a request; false if it was answered.
    pub(crate) fn drop_server_request(&self, number: u64) -> bool {
        self.asked.lock().remove(&number).is_some()
    }

    /// Removes the requests of that link and epoch, which can no longer be answered.
    pub(crate) fn forget_server_requests(&self, link: &Weak<Link>, epoch: u64) -> usize {
        let mut asked = self.asked.lock();
        let before = asked.len();
        asked.retain(|_, asked| !asked.link.ptr_eq(link) || asked.epoch != epoch);
        before - asked.len()
    }

    /// The link and the server's own progress token for the one that the agent received.
    pub(super) fn token_of(&self, token: &str) -> Option<(Arc<Link>, Box<str>)> {
        let number: u64 = token.parse().ok()?;
        let all = self.asked.lock();
        let asked = all.get(&number)?;
        match &asked.requester {
            Requester::Server { token, .. } => Some((asked.link.upgrade()?, token.clone()?)),
            Requester::Call { .. } | Requester::Hold(_) => None,
        }
    }
}
