//! Questions of servers, put to clients of protocol 2026-07-28.

use std::sync::Arc;

use bytes::Bytes;
use toolgate_json::{Edit, peek, quote, text};
use toolgate_mcp::{
    Incoming, Limits, Message, Payload, Request, method, parse_agent, parse_server, write,
};

use crate::downstream::agent::AgentSession;

/// Requests of a client in which it may be asked something.
const MAY_ASK: [&str; 3] = [method::TOOLS_CALL, method::PROMPTS_GET, method::RESOURCES_READ];

/// Whether a client may be asked something while this runs.
pub(super) fn may_ask(method: &str) -> bool {
    MAY_ASK.contains(&method)
}

/// What a client is asked before its call goes on.
pub(super) enum Question {
    /// A server of an older protocol asks, and waits for the answer.
    Asked(Box<Asked>),
    /// A server of the same protocol has asked with its result, and keeps nothing.
    Wished(String),
}

/// A question that a server waits to have answered. Dropped without an answer, the server is told
/// that there is none.
pub(super) struct Asked {
    session: Arc<AgentSession>,
    /// The id under which it was asked; none once it is answered.
    number: Option<Box<str>>,
    key: String,
    /// Raw JSON: method and params.
    what: String,
}

impl Question {
    pub(super) fn of(session: &Arc<AgentSession>, request: &Request<'_>) -> Self {
        let params =
            request.params.map(|params| format!(r#","params":{params}"#)).unwrap_or_default();
        Self::Asked(Box::new(Asked {
            session: Arc::clone(session),
            number: Some(request.id.into()),
            key: format!("q{}", request.id.trim_matches('"')),
            what: format!(r#"{{"method":{}{params}}}"#, quote(&request.method)),
        }))
    }

    /// The question that an answer of a server of the same protocol is; none if it is none.
    pub(super) fn of_result(body: &Bytes) -> Option<Self> {
        let Ok(Incoming::One(Message::Response(response))) = parse_server(body, &Limits::default())
        else {
            return None;
        };
        let Payload::Result(result) = response.payload else { return None };
        let kind = peek(result, &["resultType"]).ok().flatten().and_then(text);
        (kind.as_deref() == Some("input_required")).then(|| Self::Wished(result.to_owned()))
    }

    /// The answer to the request `id` that asks the client. What a server of the same protocol says
    /// passes as it is, but for its state.
    pub(super) fn ask(&self, id: &str, sealed: &str) -> Option<Bytes> {
        let sealed = quote(sealed);
        match self {
            Self::Asked(asked) => {
                let result = format!(
                    r#"{{"resultType":"input_required","inputRequests":{{{}:{}}},"requestState":{sealed}}}"#,
                    quote(&asked.key),
                    asked.what,
                );
                Some(write::result(id, &result))
            }
            Self::Wished(result) => {
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

impl Asked {
    /// Under which name the client answers it.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Gives the server the client's answer, raw JSON.
    pub(super) async fn answer(mut self, result: &str) {
        if let Some(number) = self.number.take() {
            respond(&self.session, &write::result(&number, result)).await;
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if let Some(number) = self.number.take() {
            let session = Arc::clone(&self.session);
            let answer = write::error(Some(&number), NOBODY, "the client gave no answer", None);
            self.session.behind_the_scenes(Box::pin(async move {
                respond(&session, &answer).await;
            }));
        }
    }
}

/// The code that clients use where nobody wants to answer.
const NOBODY: i32 = -1;

async fn respond(session: &AgentSession, answer: &Bytes) {
    let limits = Limits { depth: usize::MAX, ..Limits::default() };
    if let Ok(Incoming::One(Message::Response(response))) = parse_agent(answer, &limits) {
        session.respond(&response).await;
    }
}
