//! A call that a person makes with the rights of a grant, inside this process: *Try it* of the console.
//!
//! It takes the path of every call of a client of protocol 2026-07-28: decided by the grant's policy,
//! counted, recorded with the person.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::timeout;
use toolgate_admission::access::{Acting, Grant};
use toolgate_admission::clearance::Heads;
use toolgate_admission::reserved::{SESSIONS, TOOLGATE};
use toolgate_json::quote;
use toolgate_mcp::sessionless::{Claims, VERSION, key};
use toolgate_mcp::{Incoming, Limits, Message, method, parse_agent};
use toolgate_upstream::event_buffer::First;

use crate::downstream::endpoint::Endpoint;
use crate::gateway::{Gateway, NotOpened, NotStarted};
use crate::sessionless::{Client, Started};

/// How long a person waits for the answer.
const WAIT: Duration = Duration::from_mins(2);

/// The messages of such a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonCall {
    /// The request, raw JSON.
    pub request: String,
    /// The answer, raw JSON.
    pub answer: Bytes,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotCalled {
    /// The grant does not exist, was revoked or has expired.
    #[error("the grant `{0}` cannot be used: it is unknown, revoked or expired")]
    Grant(String),
    /// The request is invalid.
    #[error("{0}")]
    Refused(String),
    /// The grant has too many agent sessions, or toolgate is stopping.
    #[error("the call cannot be started now; try again later")]
    NotNow,
    /// No answer within two minutes. The call may have run.
    #[error("no answer within two minutes; the call may have run, see its rows in the audit")]
    TooSlow,
}

impl Gateway {
    /// Calls a tool for a person, with the rights of the grant of this label. `tool` is the server's
    /// own name, of a session tool the name it is published under.
    pub async fn call_for_person(
        &self,
        label: &str,
        acting: Acting,
        server: &str,
        tool: &str,
        arguments: &RawValue,
    ) -> Result<PersonCall, NotCalled> {
        let grant = self.admission().acting(label, acting);
        let grant = grant.ok_or_else(|| NotCalled::Grant(label.to_owned()))?;
        let endpoint = match server {
            TOOLGATE => Endpoint::All,
            SESSIONS => Endpoint::Sessions,
            name => Endpoint::Server(name.to_owned()),
        };
        let request = request(tool, arguments.get());
        let called = self.call_once(&endpoint, &grant, &request);
        let answer = timeout(WAIT, called).await.map_err(|_| NotCalled::TooSlow)??;
        Ok(PersonCall { request, answer })
    }

    async fn call_once(
        &self,
        endpoint: &Endpoint,
        grant: &Arc<Grant>,
        request: &str,
    ) -> Result<Bytes, NotCalled> {
        if matches!(endpoint, Endpoint::Server(name) if !grant.may_reach(name)) {
            let why = format!("the grant `{}` may not reach this server", grant.label);
            return Err(NotCalled::Refused(why));
        }
        let incoming = parse_agent(request.as_bytes(), &Limits::default());
        let incoming = incoming.map_err(|refusal| NotCalled::Refused(refusal.message))?;
        let Incoming::One(Message::Request(request)) = incoming else {
            return Err(NotCalled::Refused("this is not one request".to_owned()));
        };
        let claims = Claims { capabilities: "{}", client_info: Some(CLIENT), log_level: None };
        let (session, parameters) = (None, Heads::default());
        let client = Client { claims: &claims, session, parameters: Some(&parameters) };
        let started = self.sessionless_request(endpoint, grant, &client, &request).await;
        let mut stream = match started {
            Ok(Started::Answer(answer, _))
            | Err(NotStarted::NotOpened(NotOpened::Answer(answer))) => return Ok(answer),
            Ok(Started::Stream(stream)) => stream,
            Ok(Started::Call(mut call)) => match call.first().await {
                First::Answer(answer, _) => return Ok(answer.into_bytes()),
                First::Stream => call.stream(),
            },
            Err(NotStarted::Refused(refusal)) => return Err(NotCalled::Refused(refusal.message)),
            Err(NotStarted::NotOpened(_)) => return Err(NotCalled::NotNow),
        };
        // Notifications come before the answer.
        let mut last = Bytes::new();
        while let Some(message) = stream.next().await {
            last = message;
        }
        Ok(last)
    }
}

/// How the console describes itself to servers.
const CLIENT: &str =
    concat!("{\"name\":\"toolgate-console\",\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}");

/// The request of one call; the arguments keep their bytes.
fn request(tool: &str, arguments: &str) -> String {
    let meta = json!({ key::PROTOCOL_VERSION: VERSION, key::CLIENT_CAPABILITIES: {} });
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\",\"params\":{{\"name\":{},\"arguments\":{arguments},\"_meta\":{meta}}}}}",
        method::TOOLS_CALL,
        quote(tool),
    )
}
