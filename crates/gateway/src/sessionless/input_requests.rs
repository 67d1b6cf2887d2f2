//! Input that servers require of clients of protocol 2026-07-28.

use std::sync::Arc;

use bytes::Bytes;
use toolgate_json::{Edit, peek, quote, text};
use toolgate_mcp::{
    Incoming, Limits, Message, Payload, Request, method, parse_agent, parse_server, write,
};

use crate::downstream::agent::AgentSession;

/// Requests during which a server may require input.
const MAY_REQUIRE_INPUT: [&str; 3] =
    [method::TOOLS_CALL, method::PROMPTS_GET, method::RESOURCES_READ];

/// Whether a server may require input during this request.
pub(super) fn may_require_input(method: &str) -> bool {
    MAY_REQUIRE_INPUT.contains(&method)
}

/// The input that a client must provide before its call continues.
pub(super) enum InputRequest {
    /// A sessionful server sent a request and waits for the response.
    Pending(Box<PendingRequest>),
    /// A sessionless server ended the request with this result and keeps no state.
    InResult(String),
}

/// A request of a sessionful server. If it is dropped without a response, the server receives an
/// error.
pub(super) struct PendingRequest {
    session: Arc<AgentSession>,
    /// Its id towards the agent session; `None` once it is answered.
    number: Option<Box<str>>,
    key: String,
    /// Raw JSON: method and params.
    what: String,
}

impl InputRequest {
    pub(super) fn of(session: &Arc<AgentSession>, request: &Request<'_>) -> Self {
        let params =
            request.params.map(|params| format!(r#","params":{params}"#)).unwrap_or_default();
        Self::Pending(Box::new(PendingRequest {
            session: Arc::clone(session),
            number: Some(request.id.into()),
            key: format!("q{}", request.id.trim_matches('"')),
            what: format!(r#"{{"method":{}{params}}}"#, quote(&request.method)),
        }))
    }

    /// The input that a response of a sessionless server requires; `None` if it is another response.
    pub(super) fn of_result(body: &Bytes) -> Option<Self> {
        let Ok(Incoming::One(Message::Response(response))) = parse_server(body, &Limits::default())
        else {
            return None;
        };
        let Payload::Result(result) = response.payload else { return None };
        let kind = peek(result, &["resultType"]).ok().flatten().and_then(text);
        (kind.as_deref() == Some("input_required")).then(|| Self::InResult(result.to_owned()))
    }

    /// The `input_required` answer to the request `id`. The result of a sessionless server passes
    /// unchanged, except for its state.
    pub(super) fn ask(&self, id: &str, sealed: &str) -> Option<Bytes> {
        let sealed = quote(sealed);
        match self {
            Self::Pending(asked) => {
                let result = format!(
                    r#"{{"resultType":"input_required","inputRequests":{{{}:{}}},"requestState":{sealed}}}"#,
                    quote(&asked.key),
                    asked.what,
                );
                Some(write::result(id, &result))
            }
            Self::InResult(result) => {
                let edit = Edit::new(result);
                let edit = match peek(result, &["requestState"]).ok()? {
                    Some(theirs) => edit.replace(theirs, sealed),
                    None => edit.insert(result, "requestState", &sealed),
                };
                let result = edit.ok()?.finish();
                Some(write::result(id, &String::from_utf8_lossy(&result)))
            }
        }
    }
}

impl PendingRequest {
    /// The key of the client's response.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Sends the client's response to the server, raw JSON.
    pub(super) async fn answer(mut self, result: &str) {
        if let Some(number) = self.number.take() {
            respond(&self.session, &write::result(&number, result)).await;
        }
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if let Some(number) = self.number.take() {
            let session = Arc::clone(&self.session);
            let answer = write::error(Some(&number), DECLINED, "the client gave no answer", None);
            self.session.spawn_in_background(Box::pin(async move {
                respond(&session, &answer).await;
            }));
        }
    }
}

/// The error code that clients use for declined requests.
const DECLINED: i32 = -1;

async fn respond(session: &AgentSession, answer: &Bytes) {
    let limits = Limits { depth: usize::MAX, ..Limits::default() };
    if let Ok(Incoming::One(Message::Response(response))) = parse_agent(answer, &limits) {
        session.respond(&response).await;
    }
}
