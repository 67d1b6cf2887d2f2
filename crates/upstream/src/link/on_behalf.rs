//! Requests that toolgate sends on behalf of an agent and that need a permit: they are admitted and
//! recorded like the agent's own.
//!
//! Invariant: the outcome row is always written.

use std::sync::Arc;

use bytes::Bytes;
use toolgate_admission::call_request::CallRequest;
use toolgate_admission::clearance::Clearance;
use toolgate_admission::describe::describe;
use toolgate_admission::ended::Ended;
use toolgate_json::quote;
use toolgate_mcp::{Incoming, Limits, Message, Request, method, parse_server};
use toolgate_store::Completion;

use super::Link;
use super::agent::Agent;

/// Sends a request to the server of `link`; returns its answer if the request was admitted and
/// answered.
pub(crate) async fn ask(
    session: &Arc<dyn Agent>,
    link: &Arc<Link>,
    method: &str,
    params: Option<&str>,
) -> Option<Bytes> {
    let request = Request { raw: "{}", id: "0", method: method.into(), params };
    let server = link.server();
    let context = {
        let request = CallRequest::read(&request).ok()?;
        describe(session, server.name(), &request, None, |tool| server.class(tool))
    };
    let context = Arc::new(context.ok()?);
    let admission = Arc::clone(session.admission());
    let (permit, ticket) = match admission.admit(&context).await {
        Ok(admitted) => admitted.split(),
        Err(refused) => {
            tracing::debug!(
                method,
                code = refused.code(),
                "request on behalf of an agent not admitted"
            );
            return None;
        }
    };
    let answered = link.ask(method, params, Clearance::Permit(permit)).await;
    let ended = match &answered {
        Ok(answer) => match parse_server(answer, &Limits::default()) {
            Ok(Incoming::One(Message::Response(response))) => {
                Ended::answered(response.payload, response.is_error)
            }
            _ => Ended::cancelled(toolgate_audit::Effect::Unknown),
        },
        Err(failure) => failure.ended(),
    };
    let mut ending = Completion::new(ended.outcome, ended.effect, admission.now());
    ending.error_code = ended.code.map(Into::into);
    ticket.finish(ending);
    answered.ok()
}

/// Subscribes to a resource again, on a server that has lost its subscriptions.
pub(crate) async fn follow(session: &Arc<dyn Agent>, link: &Arc<Link>, uri: &str) -> bool {
    let params = format!(r#"{{"uri":{}}}"#, quote(uri));
    ask(session, link, method::RESOURCES_SUBSCRIBE, Some(&params)).await.is_some()
}
