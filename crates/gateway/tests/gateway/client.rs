//! Clients of protocol 2026-07-28, which use the gateway as the edge does.

use std::sync::Arc;

use toolgate_gateway::event_buffer::First;
use toolgate_gateway::sessionless_clients::{Client as Caller, NotStarted, Started};
use toolgate_gateway::{Endpoint, Grant};
use toolgate_mcp::sessionless::Claims;

use crate::harness::{Harness, request};
use crate::reply::{Reply, Seen, status, string};

/// A client that says the same of itself with every request.
#[derive(Clone)]
pub(crate) struct Client<'b> {
    pub(crate) harness: &'b Harness,
    pub(crate) endpoint: Endpoint,
    pub(crate) grant: Arc<Grant>,
    pub(crate) capabilities: &'static str,
    pub(crate) session: Option<&'static str>,
    pub(crate) level: Option<&'static str>,
    /// Headers that repeat arguments.
    pub(crate) parameters: &'static [(&'static str, &'static str)],
}

/// What every request holds.
pub(crate) const META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;

/// A request with the id `"a"`; `params` are the members beside `_meta`.
pub(crate) fn ask(method: &str, params: &str) -> String {
    ask_as("\"a\"", method, params)
}

pub(crate) fn ask_as(id: &str, method: &str, params: &str) -> String {
    let comma = if params.is_empty() { "" } else { "," };
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{comma}"_meta":{{{META}}}}}}}"#
    )
}

impl<'b> Client<'b> {
    /// A client of the server `files`.
    pub(crate) fn of_files(harness: &'b Harness) -> Self {
        Self::of(harness, Endpoint::Server("files".to_owned()))
    }

    pub(crate) fn of(harness: &'b Harness, endpoint: Endpoint) -> Self {
        let grant = harness.gateway.admission().caller(None).unwrap();
        Self {
            harness,
            endpoint,
            grant,
            capabilities: "{}",
            session: None,
            level: None,
            parameters: &[],
        }
    }

    /// Why a request is refused.
    pub(crate) async fn refusal(&self, raw: &str) -> String {
        match self.start(raw).await {
            Err(NotStarted::Refused(refusal)) => format!("{} {}", refusal.code, refusal.message),
            Err(NotStarted::NotOpened(why)) => format!("{why:?}"),
            Ok(_) => "not refused".to_owned(),
        }
    }

    fn start(&self, raw: &str) -> impl Future<Output = Result<Started, NotStarted>> + use<> {
        let (gateway, endpoint) = (Arc::clone(&self.harness.gateway), self.endpoint.clone());
        let (grant, raw) = (Arc::clone(&self.grant), raw.to_owned());
        let Self { capabilities, session, level, parameters, .. } = *self;
        async move {
            let log_level = level.map(Into::into);
            let claims = Claims { capabilities, client_info: None, log_level };
            let parameters = parameters
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).to_owned()))
                .collect();
            let caller = Caller { claims: &claims, session, parameters: Some(&parameters) };
            gateway.sessionless_request(&endpoint, &grant, &caller, &request(&raw)).await
        }
    }

    /// Sends a request and reads whatever comes of it; dropping the reply hangs up.
    pub(crate) fn ask(&self, raw: &str) -> Reply {
        let started = self.start(raw);
        Reply::reading(|events| async move {
            let reading = async {
                let mut stream =
                    match started.await.unwrap_or_else(|why| panic!("{why:?}")) {
                        Started::Answer(body, rejection) => {
                            drop(events.send(Seen::Body(string(&body), status(rejection))));
                            return;
                        }
                        Started::Stream(stream) => stream,
                        Started::Call(mut call) => match call.first().await {
                            First::Answer(body, rejection) => {
                                drop(events.send(Seen::Body(
                                    string(&body.into_bytes()),
                                    status(rejection),
                                )));
                                return;
                            }
                            First::Stream => call.stream(),
                        },
                    };
                while let Some(body) = stream.next().await {
                    drop(events.send(Seen::Event(string(&body))));
                }
            };
            tokio::select! {
                () = reading => {}
                () = events.closed() => {}
            }
        })
    }
}
