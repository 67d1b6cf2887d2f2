//! Requests of a server to agents, such as elicitation and sampling.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use tokio::time::Instant;
use toolgate_admission::clearance::Closed;
use toolgate_json::peek;
use toolgate_mcp::{Incoming, Limits, Message, Request, code, method, parse_server, write};

use super::QUESTION;
use crate::label;
use crate::link::agent::Agent;
use crate::link::missing_capability::answer_at_once;
use crate::link::server_request::{Requester, ServerRequest};
use crate::link::{Link, Parties};
use crate::rewrite::{push, rewrite};
use crate::tasks::TaskMessage;

impl Link {
    pub(super) fn receive_request(&self, request: &Request<'_>, epoch: u64, call: Option<u64>) {
        if self.is_sessionless() {
            // Sessionless servers send no requests, and no agent could answer them.
            self.server.metrics.dropped.inc();
            return;
        }
        let session = match &self.parties {
            Parties::One(session) => session.upgrade(),
            Parties::Many(_) | Parties::Toolgate => None,
        };
        match session {
            Some(session) if session.sees_one_server() => {
                self.ask_agent(&session, request, epoch, call);
            }
            Some(session) => self.ask_with_label(&session, request, epoch, call),
            None => self.answer_for_agents(request),
        }
    }

    fn ask_agent(
        &self,
        session: &Arc<dyn Agent>,
        request: &Request<'_>,
        epoch: u64,
        call: Option<u64>,
    ) {
        let of_call = self.buffer_of(call).or_else(|| self.waiting.newest_buffer());
        if let Some(answer) = answer_at_once(&**session, request, of_call.as_deref()) {
            return self.answer_server(answer);
        }
        let buffer = of_call.unwrap_or_else(|| Arc::clone(session.general()));
        let server = self.server.name();
        let task = TaskMessage::of(&request.method, request.params);
        if task.as_ref().is_some_and(|task| task.is_of_others(session, server)) {
            return self.refuse_server(request.id, "the task belongs to another agent");
        }
        let task = task.filter(|task| task.is_of(session, server));
        let task = task.and_then(|task| task.change(session, server));
        let token = request
            .params
            .and_then(|params| peek(params, &["_meta", "progressToken"]).ok().flatten());
        let asked = ServerRequest {
            link: Weak::clone(&self.me),
            epoch,
            requester: Requester::Server { id: request.id.into(), token: token.map(Into::into) },
            buffer: Arc::clone(&buffer),
            until: Instant::now() + QUESTION,
        };
        self.server_requests.fetch_add(1, Ordering::Relaxed);
        let Some(number) = session.ask(asked) else {
            self.server_request_done();
            let why = "the agent has too many requests to answer already";
            return self.refuse_server(request.id, why);
        };
        let number = number.to_string();
        let mut changes = vec![(request.id, number.as_str())];
        changes.extend(token.map(|token| (token, number.as_str())));
        changes.extend(task.as_ref().map(|(raw, shown)| (*raw, shown.as_str())));
        push(&buffer, request.raw, &changes);
    }

    /// Asks an agent that sees all servers; the question names its server.
    fn ask_with_label(
        &self,
        session: &Arc<dyn Agent>,
        request: &Request<'_>,
        epoch: u64,
        call: Option<u64>,
    ) {
        let named = label::params(&request.method, request.params, self.server.name());
        let (named, params) = match (named, request.params) {
            (Ok(Some(named)), Some(params)) => (named, params),
            (Ok(_), _) => return self.ask_agent(session, request, epoch, call),
            (Err(label::CannotLabel), _) => {
                return self.refuse_server(request.id, "the request cannot be parsed");
            }
        };
        let Ok(body) = rewrite(request.raw, &[(params, &named)]) else { return };
        if let Ok(Incoming::One(Message::Request(request))) =
            parse_server(&body, &Limits::default())
        {
            self.ask_agent(session, &request, epoch, call);
        }
    }

    /// Rejects a request of the server.
    pub fn refuse_server(&self, id: &str, why: &str) {
        self.answer_server(write::error(Some(id), code::INTERNAL_ERROR, why, None));
    }

    /// The agent has not answered the server's request `id` in time.
    pub fn answer_late(&self, id: &str) {
        let minutes = QUESTION.as_secs() / 60;
        self.refuse_server(id, &format!("the agent did not answer within {minutes} minutes"));
    }

    /// A request of the server that cannot be attributed to one agent.
    fn answer_for_agents(&self, request: &Request<'_>) {
        let answer = if request.method == method::PING {
            write::result(request.id, "{}")
        } else if matches!(self.parties, Parties::Toolgate) {
            let why = "toolgate only lists this server; no agent is connected";
            write::error(Some(request.id), code::METHOD_NOT_FOUND, why, None)
        } else {
            let why = "this server is shared by several agents, so it cannot ask any of them \
                       (`instances: shared` in toolgate.yaml)";
            write::error(Some(request.id), code::METHOD_NOT_FOUND, why, None)
        };
        self.answer_server(answer);
    }

    fn answer_server(&self, answer: Bytes) {
        let Some(me) = self.me.upgrade() else { return };
        self.tasks.spawn(async move { me.forward_cleared(answer, Closed::answer()).await });
    }
}
