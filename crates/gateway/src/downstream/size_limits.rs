//! Limits on the length of names, URIs and parameters.
//!
//! Invariant: a message that is too long is rejected before it is admitted, kept or sent, and leaves
//! one short row that does not repeat it.

use std::sync::Arc;

use toolgate_admission::list_kind::{NAME, URI};
use toolgate_audit::{Draft, RowKind};
use toolgate_mcp::{Refusal, code, method};

use toolgate_admission::access::Grant;
use toolgate_admission::admit::Admission;
use toolgate_admission::call_request::{CallRequest, Subject};
use toolgate_admission::store_timeout::written_in_time;
use toolgate_upstream::names::{server_of_name, server_of_uri};

/// The maximum length of `params` of a message on the closed list, in bytes.
const PARAMS: usize = 16 * 1024;

/// The part of a message that is too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TooLong {
    what: &'static str,
    bytes: usize,
    limit: usize,
}

impl TooLong {
    /// Checks a message without its subject.
    pub(crate) fn of_message(name: &str, params: Option<&str>) -> Option<Self> {
        if let Some(long) = Self::over("the method name", name.len(), NAME) {
            return Some(long);
        }
        let is_short = method::CLOSED.contains(&name) || method::is_notification(name);
        params.filter(|_| is_short).and_then(|params| Self::over("`params`", params.len(), PARAMS))
    }

    /// Checks a request. With `mapped`, names and URIs may begin with a server.
    pub(crate) fn of(request: &CallRequest<'_>, mapped: bool) -> Option<Self> {
        if let Some(long) = Self::of_message(request.method, request.params) {
            return Some(long);
        }
        // Values of another type are rejected where the request is decided.
        let (name, uri) = match &request.subject {
            Subject::Tool(name) | Subject::Prompt(name) => (name.as_ref(), None),
            Subject::Resource(uri) => (None, uri.as_ref()),
            Subject::Reference(reference) => (reference.name.as_ref(), reference.uri.as_ref()),
            _ => (None, None),
        };
        let name = name.and_then(|name| name.text.as_deref()).and_then(|name| {
            let prefix = prefix(name, mapped, server_of_name, 2);
            Self::over("`name`", name.len().saturating_sub(prefix), NAME)
        });
        let uri = uri.and_then(|uri| uri.text.as_deref()).and_then(|uri| {
            let prefix = prefix(uri, mapped, server_of_uri, 3);
            Self::over("`uri`", uri.len().saturating_sub(prefix), URI)
        });
        name.or(uri)
    }

    fn over(what: &'static str, bytes: usize, limit: usize) -> Option<Self> {
        (bytes > limit).then_some(Self { what, bytes, limit })
    }

    /// The answer to the sender.
    pub(crate) fn refusal(&self, id: Option<&str>) -> Refusal {
        let message = format!("{self}; nothing was sent");
        Refusal { code: code::INVALID_PARAMS, message, id: id.map(str::to_owned) }
    }

    /// Records the rejection in one short row.
    pub(crate) async fn record(
        &self,
        admission: &Admission,
        grant: &Arc<Grant>,
        via: &str,
        name: &str,
    ) {
        let mut draft = Draft::new(RowKind::Denied, admission.now());
        draft.grant = Some(Arc::clone(&grant.label));
        draft.identity.clone_from(&grant.identity);
        draft.via = Some(via.into());
        draft.method = (name.len() <= NAME).then(|| name.into());
        draft.error_code = Some("too_long".into());
        draft.message = Some(self.to_string().into());
        let _place = grant.slots.take().await;
        if let Err(error) = written_in_time(admission.store().deny(draft)).await {
            tracing::error!(%error, "rejection of a long message not recorded");
        }
    }
}

impl std::fmt::Display for TooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { what, bytes, limit } = self;
        write!(f, "{what} has {bytes} bytes; the limit is {limit}")
    }
}

/// The length of the server prefix of a name.
fn prefix(
    shown: &str,
    mapped: bool,
    server: impl FnOnce(&str) -> Option<&str>,
    separator: usize,
) -> usize {
    // The maximum length of a server name.
    const SERVER: usize = 32;
    let server = if mapped { server(shown) } else { None };
    server.filter(|server| server.len() <= SERVER).map_or(0, |server| server.len() + separator)
}

#[cfg(test)]
mod tests {
    use toolgate_mcp::Request;

    use super::*;

    fn check(method: &str, params: &str, mapped: bool, what: Option<&str>) {
        let request = Request { raw: "", id: "1", method: method.into(), params: Some(params) };
        let long = TooLong::of(&CallRequest::read(&request).unwrap(), mapped);
        let shown = params.get(..60).unwrap_or(params);
        assert_eq!(long.map(|long| long.what), what, "{method} {shown}");
    }

    #[test]
    fn names_uris_and_params_have_limits() {
        let name = |bytes: usize| format!(r#"{{"name":"{}"}}"#, "a".repeat(bytes));
        let uri = |bytes: usize| format!(r#"{{"uri":"{}"}}"#, "a".repeat(bytes));
        let reference = |inner: String| format!(r#"{{"ref":{inner}}}"#);
        let params = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "a".repeat(bytes - 8));
        for mapped in [false, true] {
            for method in ["tools/call", "prompts/get"] {
                check(method, &name(256), mapped, None);
                check(method, &name(257), mapped, Some("`name`"));
            }
            for method in ["resources/read", "resources/subscribe", "resources/unsubscribe"] {
                check(method, &uri(8192), mapped, None);
                check(method, &uri(8193), mapped, Some("`uri`"));
            }
            let complete = "completion/complete";
            check(complete, &reference(name(256)), mapped, None);
            check(complete, &reference(name(257)), mapped, Some("`name`"));
            check(complete, &reference(uri(8193)), mapped, Some("`uri`"));
            for method in method::CLOSED.into_iter().chain(["notifications/x"]) {
                check(method, &params(16 * 1024), mapped, None);
                check(method, &params(16 * 1024 + 1), mapped, Some("`params`"));
            }
            check(&"m".repeat(256), "{}", mapped, None);
            check(&"m".repeat(257), "{}", mapped, Some("the method name"));
            check("x/y", &params(1_000_000), mapped, None);
        }
        // Escapes count as one byte each.
        check("tools/call", &format!(r#"{{"name":"{}"}}"#, "\\u0061".repeat(256)), false, None);
        let shown = format!(r#"{{"name":"files__{}"}}"#, "a".repeat(256));
        check("tools/call", &shown, true, None);
        check("tools/call", &shown, false, Some("`name`"));
    }
}
