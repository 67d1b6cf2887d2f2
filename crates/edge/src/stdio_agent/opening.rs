//! The agent session of a sessionful client.

use std::sync::Arc;

use toolgate_gateway::{AgentSession, NotOpened};
use toolgate_mcp::{Incoming, Message, Request, code, write};

use super::Agent;

impl Agent {
    /// Opens the agent session; a second `initialize` replaces it, as a new HTTP session would.
    pub(super) async fn open(self: &Arc<Self>, request: &Request<'_>) {
        let gateway = &self.served.gateway;
        let Some(caller) = self.caller() else {
            return self.send(no_access(request.id)).await;
        };
        let opened = gateway.open(&self.served.endpoint, request, &caller).await;
        let answer = match opened {
            Ok((session, answer)) => {
                let before = self.session.lock().replace(session);
                if let Some(before) = before {
                    gateway.end(&before);
                }
                answer
            }
            Err(NotOpened::Answer(answer)) => answer,
            Err(why) => write::error(Some(request.id), code::INTERNAL_ERROR, reason(&why), None),
        };
        self.send(answer).await;
    }

    /// The agent session, if its grant is still valid.
    pub(super) fn session(&self) -> Option<Arc<AgentSession>> {
        let session = self.session.lock().clone()?;
        let caller = self.caller()?;
        self.served.gateway.session(&self.served.endpoint, session.id(), &caller)
    }

    pub(super) async fn refuse_unopened(&self, message: &Incoming<'_>) {
        let why = "there is no agent session: it has ended or was never opened; send `initialize`";
        if let Incoming::One(Message::Request(request)) = message {
            self.send(write::error(Some(request.id), code::INVALID_REQUEST, why, None)).await;
        } else if let Incoming::Batch(_) = message {
            self.send(write::error(None, code::INVALID_REQUEST, why, None)).await;
        }
    }
}

/// The answer to a request that no grant covers.
pub(super) fn no_access(id: &str) -> bytes::Bytes {
    let why = "toolgate no longer accepts calls over stdio here; see its log";
    write::error(Some(id), code::INVALID_REQUEST, why, None)
}

/// Why no agent session was opened.
pub(super) fn reason(why: &NotOpened) -> &'static str {
    match why {
        NotOpened::Answer(_) | NotOpened::UnknownServer => "the server is not configured",
        NotOpened::TooMany(_) | NotOpened::TooManyOfGrant(_) => {
            "there are too many agent sessions (`agent_sessions` in toolgate.yaml)"
        }
        NotOpened::Stopping => "toolgate is stopping; try again in a moment",
        NotOpened::NoIds => "no agent session id could be generated; see the log of toolgate",
    }
}
