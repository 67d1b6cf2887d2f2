//! What a request is about, read for the decision: the one place that says by which words of it a
//! policy decides.
//!
//! Invariant: a request whose words a server might read otherwise than the policy is refused.
//!
//! Start at [`wanted`].

use std::sync::Arc;

use toolgate_json::{members, peek, text};
use toolgate_mcp::{Refusal, Request, code, method};
use toolgate_policy::Class;

use crate::admit::{Wanted, What};
use crate::caller::Caller;

/// What a request that can do something is about. What a policy decides by must be there in the
/// form it has: a server may read a word where there is none (a list of one name, say).
pub fn wanted(
    caller: &dyn Caller,
    server: &str,
    request: &Request<'_>,
    own: Option<&str>,
    class: impl FnOnce(&str) -> Class,
) -> Result<Wanted, Refusal> {
    let params = request.params.unwrap_or("{}");
    let is_method = !DECIDED_BY_PARAMS.contains(&request.method.as_ref());
    if !params.starts_with('{') && !is_method {
        return Err(unreadable(request, "`params` must be an object"));
    }
    let [name, arguments] =
        if is_method { [None, None] } else { members(params, ["name", "arguments"])? };
    let is_call = request.method == method::TOOLS_CALL;
    if is_call && arguments.is_some_and(|raw| !raw.starts_with('{') && raw != "null") {
        return Err(unreadable(request, "`params.arguments` must be an object"));
    }
    // A server may have something to say of a request without a name; a policy says it first.
    let named = |found: Option<&str>, what: &str| -> Result<Arc<str>, Refusal> {
        let word = found.map(|raw| {
            text(raw).ok_or_else(|| unreadable(request, &format!("`{what}` must be a string")))
        });
        let word = word.transpose()?.unwrap_or_default();
        Ok(own.map_or_else(|| word.into(), Into::into))
    };
    let what = match request.method.as_ref() {
        method::TOOLS_CALL => {
            let tool = named(name, "params.name")?;
            let class = class(&tool);
            What::Tool(tool, class)
        }
        method::PROMPTS_GET => What::Prompt(named(name, "params.name")?),
        method::COMPLETION_COMPLETE => {
            check_reference(request, params)?;
            match (peek(params, &["ref", "name"])?, peek(params, &["ref", "uri"])?) {
                (Some(_), Some(_)) => return Err(unreadable(request, BOTH)),
                (None, uri @ Some(_)) => What::Resource(named(uri, "params.ref.uri")?),
                (name, None) => What::Prompt(named(name, "params.ref.name")?),
            }
        }
        method::RESOURCES_READ | method::RESOURCES_SUBSCRIBE => {
            What::Resource(named(peek(params, &["uri"])?, "params.uri")?)
        }
        other => What::Method(other.into()),
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
        method: request.method.as_ref().into(),
        arguments: arguments.filter(|raw| *raw != "null").unwrap_or("{}").to_owned(),
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

/// A reference is what its type says: a server may go by either.
fn check_reference(request: &Request<'_>, params: &str) -> Result<(), Refusal> {
    let Some(reference) = peek(params, &["ref"])? else { return Ok(()) };
    if !reference.starts_with('{') {
        return Err(unreadable(request, "`params.ref` must be an object"));
    }
    let [kind, name, uri] = members(reference, ["type", "name", "uri"])?;
    let Some(kind) = kind else { return Ok(()) };
    match (text(kind).as_deref(), name, uri) {
        (Some("ref/prompt"), _, None) | (Some("ref/resource"), None, _) => Ok(()),
        (_, Some(_), Some(_)) => Err(unreadable(request, BOTH)),
        _ => Err(unreadable(
            request,
            "`params.ref.type` must be `ref/prompt` with a `name`, or `ref/resource` with a `uri`",
        )),
    }
}

/// What is refused because a policy decides by it, and a server might read it otherwise.
pub const BOTH: &str = "`params.ref` has both `name` and `uri`; send the one that is meant";

/// The refusal of a request that cannot be decided as it is written.
pub fn unreadable(request: &Request<'_>, why: &str) -> Refusal {
    let id = Some(request.id.to_owned());
    Refusal { code: code::INVALID_PARAMS, message: why.to_owned(), id }
}
