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
use crate::link::asked::{Asked, Asker};
use crate::link::missing_capability::answer_at_once;
use crate::link::{Link, Parties};
use crate::rewrite::{push, rewrite};
use crate::tasks::Named;

impl Link {
    pub(super) fn hear_request(&self, request: &Request<'_>, epoch: u64, call: Option<u64>) {
        if self.speaks_modern() {
            // Servers ask nothing like that in protocol 2026-07-28, and nobody could answer.
            self.server.metrics.dropped.inc();
            return;
        }
        let session = match &self.parties {
            Parties::One(session) => session.upgrade(),
            Parties::Many(_) => None,
        };
        match session {
            Some(session) if session.sees_one_server() => {
                self.ask_agent(&session, request, epoch, call);
            }
            Some(session) => self.ask_under_its_name(&session, request, epoch, call),
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
        let of_call = self.outlet_of(call).or_else(|| self.waiting.newest_outlet());
        if let Some(answer) = answer_at_once(&**session, request, of_call.as_deref()) {
            return self.answer_server(answer);
        }
        let outlet = of_call.unwrap_or_else(|| Arc::clone(session.general()));
        let server = self.server.name();
        let task = Named::of(&request.method, request.params);
        if task.as_ref().is_some_and(|task| task.is_of_others(session, server)) {
            return self.refuse_server(request.id, "the task belongs to another agent");
        }
        let task = task.filter(|task| task.is_of(session, server));
        let task = task.and_then(|task| task.change(session, server));
        let token = request
            .params
            .and_then(|params| peek(params, &["_meta", "progressToken"]).ok().flatten());
        let asked = Asked {
            link: Weak::clone(&self.me),
            epoch,
            asker: Asker::Server { id: request.id.into(), token: token.map(Into::into) },
            outlet: Arc::clone(&outlet),
            until: Instant::now() + QUESTION,
        };
        self.asked.fetch_add(1, Ordering::Relaxed);
        let Some(number) = session.ask(asked) else {
            self.unasked();
            let why = "the agent has too many requests to answer already";
            return self.refuse_server(request.id, why);
        };
        let number = number.to_string();
        let mut changes = vec![(request.id, number.as_str())];
        changes.extend(token.map(|token| (token, number.as_str())));
        changes.extend(task.as_ref().map(|(raw, shown)| (*raw, shown.as_str())));
        push(&outlet, request.raw, &changes);
    }

    /// A question to an agent that sees all servers says which one asks.
    fn ask_under_its_name(
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
            (Err(label::Unnamed), _) => {
                return self.refuse_server(request.id, "the question cannot be read");
            }
        };
        let Ok(body) = rewrite(request.raw, &[(params, &named)]) else { return };
        if let Ok(Incoming::One(Message::Request(request))) =
            parse_server(&body, &Limits::default())
        {
            self.ask_agent(session, &request, epoch, call);
        }
    }

    /// Tells the server that its question is not asked.
    fn refuse_server(&self, id: &str, why: &str) {
        self.answer_server(write::error(Some(id), code::INTERNAL_ERROR, why, None));
    }

    /// The agent has not answered the server's question `id` in time.
    pub fn answer_late(&self, id: &str) {
        let minutes = QUESTION.as_secs() / 60;
        self.refuse_server(id, &format!("the agent gave no answer within {minutes} minutes"));
    }

    /// On a shared link there is no one agent that the server could mean.
    fn answer_for_agents(&self, request: &Request<'_>) {
        let answer = if request.method == method::PING {
            write::result(request.id, "{}")
        } else {
            let why = "this server is shared by several agents, so it cannot ask any of them \
                       (`instances: shared` in toolgate.yaml)";
            write::error(Some(request.id), code::METHOD_NOT_FOUND, why, None)
        };
        self.answer_server(answer);
    }

    fn answer_server(&self, answer: Bytes) {
        let Some(me) = self.me.upgrade() else { return };
        self.tasks.spawn(async move { me.tell(answer, Closed::answer()).await });
    }
}
