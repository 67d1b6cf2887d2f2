//! Requests of protocol 2026-07-28 over stdio: each describes itself in its body.
//!
//! There are no headers to compare and no connection to close: `notifications/cancelled` cancels.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolgate_gateway::event_buffer::First;
use toolgate_gateway::sessionless_clients::{Client, NotStarted, SessionlessStream, Started};
use toolgate_gateway::{NotOpened, refused};
use toolgate_mcp::sessionless::{Objection, judge_body};
use toolgate_mcp::{Incoming, Limits, Message, Request, method, parse_agent, write};

use super::Agent;
use super::opening::{no_access, reason};

impl Agent {
    /// Starts a request; cancels one; other notifications are accepted and ignored.
    pub(super) fn sessionless(
        self: &Arc<Self>,
        line: &Bytes,
        message: &Incoming<'_>,
        limits: &Limits,
    ) {
        match message {
            Incoming::One(Message::Request(request)) => {
                let cancel = self.closing_of(&request.method);
                let id = request.id.to_owned();
                self.requests.lock().insert(id.clone(), cancel.clone());
                let (me, line, limits) = (Arc::clone(self), line.clone(), *limits);
                let work = async move {
                    let answered = me.answer_line(&line, &limits);
                    cancel.run_until_cancelled(answered).await;
                    me.requests.lock().remove(&id);
                };
                if request.method == method::LISTEN {
                    // It has no end of its own.
                    tokio::spawn(work);
                } else {
                    self.calls.spawn(work);
                }
            }
            Incoming::One(Message::Notification(notification))
                if notification.method == method::CANCELLED =>
            {
                self.cancel(notification.params);
            }
            _ => {}
        }
    }

    /// Cancels a running sessionless request, as closing its stream does over HTTP.
    pub(super) fn cancel(&self, params: Option<&str>) {
        let params: Option<Value> = params.and_then(|params| serde_json::from_str(params).ok());
        let Some(id) = params.as_ref().and_then(|params| params.get("requestId")) else { return };
        if let Some(running) = self.requests.lock().get(&id.to_string()) {
            running.cancel();
        }
    }

    fn closing_of(&self, method: &str) -> CancellationToken {
        if method == method::LISTEN { self.closing.child_token() } else { CancellationToken::new() }
    }

    async fn answer_line(&self, line: &Bytes, limits: &Limits) {
        // Parsed again, because the message borrows the line.
        if let Ok(Incoming::One(Message::Request(request))) = parse_agent(line, limits) {
            self.answer(&request).await;
        }
    }

    async fn answer(&self, request: &Request<'_>) {
        let claims = match judge_body(request) {
            Ok(claims) => claims,
            Err(Objection { code, message, data }) => {
                let error = write::error(Some(request.id), code, &message, data.as_deref());
                return self.send(error).await;
            }
        };
        let Some(caller) = self.caller() else { return self.send(no_access(request.id)).await };
        let client = Client { claims: &claims, session: None, parameters: None };
        let (gateway, endpoint) = (&self.served.gateway, &self.served.endpoint);
        match gateway.sessionless_request(endpoint, &caller, &client, request).await {
            Ok(Started::Call(mut call)) => match call.first().await {
                First::Answer(answer, _) => self.send(answer.into_bytes()).await,
                First::Stream => self.stream(call.stream()).await,
            },
            Ok(Started::Stream(stream)) => self.stream(stream).await,
            Ok(Started::Answer(answer, _))
            | Err(NotStarted::NotOpened(NotOpened::Answer(answer))) => self.send(answer).await,
            Err(NotStarted::NotOpened(why)) => {
                let code = toolgate_mcp::code::INTERNAL_ERROR;
                self.send(write::error(Some(request.id), code, reason(&why), None)).await;
            }
            Err(NotStarted::Refused(refusal)) => self.send(refused(&refusal)).await,
        }
    }

    async fn stream(&self, mut messages: SessionlessStream) {
        while let Some(message) = messages.next().await {
            self.send(message).await;
        }
    }
}
