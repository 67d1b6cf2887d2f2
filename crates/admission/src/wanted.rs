//! What a policy decides a request by.
//!
//! Invariant: a request that a server might read otherwise than the policy is rejected.
//!
//! Start at [`wanted`].

use std::sync::Arc;

use toolgate_mcp::{Refusal, code, method};
use toolgate_policy::Class;

use crate::admit::{Wanted, What};
use crate::call_request::{CallRequest, Reference, Subject, Word};
use crate::caller::Caller;

/// The request as it is decided. What a policy decides by must have the form that the protocol
/// gives it: a server may read a name where there is none (a list of one name, say).
pub fn wanted(
    caller: &dyn Caller,
    server: &str,
    request: &CallRequest<'_>,
    own: Option<&str>,
    class: impl FnOnce(&str) -> Class,
) -> Result<Wanted, Refusal> {
    let is_method = !DECIDED_BY_PARAMS.contains(&request.method);
    if !is_method && !request.params.is_none_or(|params| params.starts_with('{')) {
        return Err(request.unreadable("`params` must be an object"));
    }
    let arguments = request.arguments.filter(|raw| !is_method && *raw != "null");
    if request.method == method::TOOLS_CALL && arguments.is_some_and(|raw| !raw.starts_with('{')) {
        return Err(request.unreadable("`params.arguments` must be an object"));
    }
    // A server may have something to say of a request without a name; a policy says it first.
    let named = |word: &Option<Word<'_>>, what: &str| -> Result<Arc<str>, Refusal> {
        let text = match word {
            None => "",
            Some(Word { text: Some(text), .. }) => text,
            Some(_) => return Err(request.unreadable(&format!("`{what}` must be a string"))),
        };
        Ok(own.unwrap_or(text).into())
    };
    let what = match &request.subject {
        Subject::Tool(name) => {
            let tool = named(name, "params.name")?;
            let class = class(&tool);
            What::Tool(tool, class)
        }
        Subject::Prompt(name) => What::Prompt(named(name, "params.name")?),
        Subject::Reference(reference) => {
            check_reference(request, reference)?;
            match reference {
                Reference { uri: None, name, .. } => What::Prompt(named(name, "params.ref.name")?),
                Reference { uri, .. } => What::Resource(named(uri, "params.ref.uri")?),
            }
        }
        Subject::Resource(uri) if !is_method => What::Resource(named(uri, "params.uri")?),
        _ => What::Method(request.method.into()),
    };
    let began = caller.admission().now();
    let call_id = caller.admission().call_id(began).ok_or_else(|| Refusal {
        code: code::INTERNAL_ERROR,
        message: "no id could be made for this call, so nothing was sent; see the log".to_owned(),
        id: None,
    })?;
    Ok(Wanted {
        sender: caller.sender(),
        server: server.into(),
        what,
        aliases: Arc::default(),
        session: None,
        method: request.method.into(),
        arguments: arguments.unwrap_or("{}").to_owned(),
        call_id,
        began,
    })
}

/// Methods that a policy decides by what they are about; every other one by its name.
const DECIDED_BY_PARAMS: [&str; 5] = [
    method::TOOLS_CALL,
    method::PROMPTS_GET,
    method::RESOURCES_READ,
    method::RESOURCES_SUBSCRIBE,
    method::COMPLETION_COMPLETE,
];

/// A reference has the type of what it names, and names one thing: a server may go by either.
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
