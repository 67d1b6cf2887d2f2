//! Describes an agent's request for the decision.
//!
//! Invariant: a request that a server might read differently from the policy is rejected.
//!
//! Start at [`describe`].

use std::sync::Arc;

use toolgate_mcp::{Refusal, code, method};
use toolgate_policy::Class;

use crate::call_context::{CallContext, CallSubject};
use crate::call_request::{CallRequest, RawText, Reference, Subject};
use crate::caller::Caller;

/// The request as it is decided. Everything that a policy reads must have the type that the protocol
/// defines, because a server may read another type in its own way.
pub fn describe(
    caller: &dyn Caller,
    server: &str,
    request: &CallRequest<'_>,
    own: Option<&str>,
    class: impl FnOnce(&str) -> Class,
) -> Result<CallContext, Refusal> {
    let is_method = !DECIDED_BY_PARAMS.contains(&request.method);
    if !is_method && !request.params.is_none_or(|params| params.starts_with('{')) {
        return Err(request.unreadable("`params` must be an object"));
    }
    let arguments = request.arguments.filter(|raw| !is_method && *raw != "null");
    if request.method == method::TOOLS_CALL && arguments.is_some_and(|raw| !raw.starts_with('{')) {
        return Err(request.unreadable("`params.arguments` must be an object"));
    }
    // A request without a name may still be forwarded, so the policy decides the empty name.
    let named = |value: &Option<RawText<'_>>, what: &str| -> Result<Arc<str>, Refusal> {
        let text = match value {
            None => "",
            Some(RawText { text: Some(text), .. }) => text,
            Some(_) => return Err(request.unreadable(&format!("`{what}` must be a string"))),
        };
        Ok(own.unwrap_or(text).into())
    };
    let subject = match &request.subject {
        Subject::Tool(name) => {
            let tool = named(name, "params.name")?;
            let class = class(&tool);
            CallSubject::Tool(tool, class)
        }
        Subject::Prompt(name) => CallSubject::Prompt(named(name, "params.name")?),
        Subject::Reference(reference) => {
            check_reference(request, reference)?;
            match reference {
                Reference { uri: None, name, .. } => {
                    CallSubject::Prompt(named(name, "params.ref.name")?)
                }
                Reference { uri, .. } => CallSubject::Resource(named(uri, "params.ref.uri")?),
            }
        }
        Subject::Resource(uri) if !is_method => CallSubject::Resource(named(uri, "params.uri")?),
        _ => CallSubject::Method(request.method.into()),
    };
    let began = caller.admission().now();
    let call_id = caller.admission().call_id(began).ok_or_else(|| Refusal {
        code: code::INTERNAL_ERROR,
        message: "no id could be made for this call, so nothing was sent; see the log".to_owned(),
        id: None,
    })?;
    Ok(CallContext {
        sender: caller.sender(),
        server: server.into(),
        subject,
        aliases: Arc::default(),
        fingerprint: None,
        session: None,
        method: request.method.into(),
        arguments: arguments.unwrap_or("{}").to_owned(),
        call_id,
        began,
    })
}

/// Methods that a policy decides by their subject; every other one by its name.
const DECIDED_BY_PARAMS: [&str; 5] = [
    method::TOOLS_CALL,
    method::PROMPTS_GET,
    method::RESOURCES_READ,
    method::RESOURCES_SUBSCRIBE,
    method::COMPLETION_COMPLETE,
];

/// A reference must name one thing and have its type, because a server may use either.
fn check_reference(request: &CallRequest<'_>, reference: &Reference<'_>) -> Result<(), Refusal> {
    let Reference { raw, kind, name, uri } = reference;
    if raw.is_some_and(|raw| !raw.starts_with('{')) {
        return Err(request.unreadable("`params.ref` must be an object"));
    }
    if name.is_some() && uri.is_some() {
        return Err(request.unreadable(BOTH));
    }
    let Some(kind) = kind else { return Ok(()) };
    match (kind.text.as_deref(), name, uri) {
        (Some("ref/prompt"), _, None) | (Some("ref/resource"), None, _) => Ok(()),
        _ => Err(request.unreadable(
            "`params.ref.type` must be `ref/prompt` with a `name`, or `ref/resource` with a `uri`",
        )),
    }
}

/// Why a completion that names two things is rejected.
pub const BOTH: &str = "`params.ref` has both `name` and `uri`; send the one that is meant";
