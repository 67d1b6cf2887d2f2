//! How an agent session starts requests.

use std::sync::Arc;

use toolgate_admission::answer_kind::AnswerKind;
use toolgate_admission::call_request::{CallRequest, Subject};
use toolgate_admission::contained::{Work, contained};
use toolgate_json::quote;
use toolgate_mcp::{Refusal, code, method, write};
use toolgate_upstream::cursors;
use toolgate_upstream::event_buffer::EventBuffer;
use toolgate_upstream::forward::{forward, refuse_task};
use toolgate_upstream::link::AgentRequest;
use toolgate_upstream::reply::Reply;
use toolgate_upstream::rewrite::refused;
use toolgate_upstream::tasks;

use super::AgentSession;
use crate::downstream::endpoint::Endpoint;
use crate::downstream::size_limits::TooLong;

impl AgentSession {
    /// Starts a request; when the work is done, it is answered.
    pub(super) fn start(
        self: &Arc<Self>,
        request: CallRequest<'_>,
        buffer: &Arc<EventBuffer>,
    ) -> Result<Work, Refusal> {
        self.touch();
        check_level(&request)?;
        if let Some(long) = TooLong::of(&request, !self.endpoint.is_one()) {
            return Ok(self.reject(&request, long, buffer));
        }
        self.dispatch(request, buffer)
    }

    /// The same for a request that is not too long.
    pub(crate) fn start_checked(
        self: &Arc<Self>,
        request: CallRequest<'_>,
        buffer: &Arc<EventBuffer>,
    ) -> Result<Work, Refusal> {
        self.touch();
        check_level(&request)?;
        self.dispatch(request, buffer)
    }

    fn dispatch(
        self: &Arc<Self>,
        request: CallRequest<'_>,
        buffer: &Arc<EventBuffer>,
    ) -> Result<Work, Refusal> {
        let id = request.id;
        let started = match &self.endpoint {
            Endpoint::Server(server) => self.start_one(server, request, buffer),
            Endpoint::All | Endpoint::Sessions => self.aggregate.start(self, request, buffer),
        };
        started.map_err(|refusal| Refusal { id: Some(id.to_owned()), ..refusal })
    }

    fn start_one(
        self: &Arc<Self>,
        server: &str,
        request: CallRequest<'_>,
        buffer: &Arc<EventBuffer>,
    ) -> Result<Work, Refusal> {
        let links = self.links.load();
        let Some(link) = links.first() else {
            return Err(Refusal {
                code: code::INVALID_REQUEST,
                message: "this agent session has ended".to_owned(),
                id: None,
            });
        };
        // They belong to the other era, or to the handshake, which is over.
        let other = [method::INITIALIZE, method::DISCOVER, method::LISTEN];
        if !self.is_implicit && other.contains(&request.method) {
            let why = format!("there is no method `{}` in this agent session", request.method);
            buffer.answer(write::error(Some(request.id), code::METHOD_NOT_FOUND, &why, None), None);
            return Ok(Box::pin(std::future::ready(())));
        }
        self.server_subscriptions.note(&request);
        let task = match self.task_at(server, &request) {
            Ok(task) => task,
            Err(refusal) => return refuse_task(self, server, &request, refusal, buffer),
        };
        let related = tasks::related(self, server, request.related_task)?;
        let Ok(cursor) = cursors::own(self, server, &request) else {
            // Perhaps of a list that was relayed.
            link.server().note_pages();
            buffer.answer(refused(&cursors::invalid(request.id)), None);
            return Ok(Box::pin(std::future::ready(())));
        };
        let tasks = task.iter().chain(&related).map(|(part, own)| (*part, quote(own)));
        let changes: Vec<_> = tasks.chain(cursor).collect();
        let changes: Vec<_> = changes.iter().map(|(part, own)| (*part, own.as_str())).collect();
        let grant = self.grant();
        let ask = AgentRequest {
            own: None,
            changes: &changes,
            task: task.as_ref().map(|(_, own)| own.as_str()),
            mapped: false,
            hides: grant.may_hide().then(|| (&grant, self.admission.now())),
        };
        forward(self, link, request, &ask, buffer)
    }

    /// The task of `server` that a request is about; none if it is about none.
    fn task_at<'a>(
        &self,
        server: &str,
        request: &CallRequest<'a>,
    ) -> Result<Option<tasks::Part<'a>>, Refusal> {
        let Subject::Task(_) = request.subject else { return Ok(None) };
        let (of, task) = tasks::subject(self, request)?;
        if of == server { Ok(Some(task)) } else { Err(tasks::no_such_task()) }
    }

    /// Rejects a request unread.
    fn reject(&self, request: &CallRequest<'_>, long: TooLong, buffer: &Arc<EventBuffer>) -> Work {
        let admission = Arc::clone(&self.admission);
        let reply = Reply::new(buffer, request.id, AnswerKind::of(request.method));
        let (grant, via) = (self.grant(), Arc::clone(&self.sender.via));
        let (name, refusal) = (request.method.to_owned(), long.refusal(Some(request.id)));
        contained(async move || {
            long.record(&admission, &grant, &via, &name).await;
            reply.answer(refused(&refusal));
        })
    }
}

/// A log level is a string; a server could read anything else its own way.
fn check_level(request: &CallRequest<'_>) -> Result<(), Refusal> {
    match &request.subject {
        Subject::Level(level) if !level.as_ref().is_some_and(|it| it.raw.starts_with('"')) => {
            Err(request.unreadable("`params.level` must be a string"))
        }
        _ => Ok(()),
    }
}
