//! Clients of protocol 2026-07-28, which use the gateway as the edge does.

use std::sync::Arc;

use toolgate_gateway::modern::{Client as Caller, ModernCall, NotStarted};
use toolgate_gateway::outlet::First;
use toolgate_gateway::{Endpoint, Grant};
use toolgate_mcp::modern::Claims;

use crate::bed::{Bed, Reply, Seen, request, string};

/// A client that says the same of itself with every request.
#[derive(Clone)]
pub(crate) struct Client<'b> {
    pub(crate) bed: &'b Bed,
    pub(crate) endpoint: Endpoint,
    pub(crate) grant: Arc<Grant>,
    pub(crate) capabilities: &'static str,
    pub(crate) session: Option<&'static str>,
    pub(crate) level: Option<&'static str>,
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
    pub(crate) fn of_files(bed: &'b Bed) -> Self {
        Self::of(bed, Endpoint::Server("files".to_owned()))
    }

    pub(crate) fn of(bed: &'b Bed, endpoint: Endpoint) -> Self {
        let grant = bed.gateway.admission().caller(None).unwrap();
        Self { bed, endpoint, grant, capabilities: "{}", session: None, level: None }
    }

    pub(crate) fn try_call(&self, raw: &str) -> Result<ModernCall, NotStarted> {
        let claims = Claims {
            capabilities: self.capabilities,
            client_info: None,
            log_level: self.level.map(Into::into),
        };
        let caller = Caller { claims: &claims, session: self.session };
        self.bed.gateway.modern(&self.endpoint, &self.grant, &caller, &request(raw))
    }

    /// Sends a request and reads whatever comes of it; dropping the reply hangs up.
    pub(crate) fn ask(&self, raw: &str) -> Reply {
        let mut call = self.try_call(raw).unwrap();
        Reply::reading(|events| async move {
            let first = tokio::select! {
                first = call.first() => first,
                () = events.closed() => return,
            };
            if let First::Answer(body, status) = first {
                drop(events.send(Seen::Body(string(&body.into_bytes()), status)));
                return;
            }
            let mut stream = call.stream();
            loop {
                let next = tokio::select! {
                    next = stream.next() => next,
                    () = events.closed() => return,
                };
                let Some(body) = next else { return };
                drop(events.send(Seen::Event(string(&body))));
            }
        })
    }
}
