//! The parts of a request that must be equal in every round of its call.
//!
//! Invariant: every member of `params` is compared, except for the state, the input responses, and
//! the members of `_meta` that describe the message. The server receives those of the first round
//! (`link/input_required.rs`).

use toolgate_admission::call_request::CallRequest;
use toolgate_admission::multi_round::OF_ROUND;
use toolgate_audit::Hash;
use toolgate_json::{canonical, entries, text};
use toolgate_mcp::sessionless::key;
use toolgate_mcp::{Refusal, code};

use crate::downstream::agent::AgentSession;

/// Members of `_meta` that describe one message or its client.
const OF_MESSAGE: [&str; 8] = [
    "progressToken",
    "traceparent",
    "tracestate",
    "baggage",
    key::PROTOCOL_VERSION,
    key::CLIENT_CAPABILITIES,
    key::CLIENT_INFO,
    key::LOG_LEVEL,
];

/// A digest of what a state is bound to: grant, endpoint, method and parameters.
pub(super) fn bound(session: &AgentSession, request: &CallRequest<'_>) -> Result<String, Refusal> {
    let params = same_params(request.params.unwrap_or("{}"))?;
    let (grant, endpoint) = (session.grant(), session.endpoint().to_string());
    let parts = [&*grant.label, &endpoint, request.method, &params];
    // With their lengths, so that different parts never give the same text.
    let whole = parts.map(|part| format!("{} {part}", part.len())).concat();
    Ok(Hash::of(whole.as_bytes()).to_string())
}

/// The canonical form, because a client may serialise it again. Numbers keep their spelling.
fn same_params(params: &str) -> Result<String, Refusal> {
    let meta = kept(params, |key| key == "_meta")?.into_iter().next().map(|(_, meta)| meta);
    let mut all = kept(params, |key| !OF_ROUND.contains(&key))?;
    if !all.iter().any(|(key, _)| text(key).as_deref() == Some("arguments")) {
        all.push(("\"arguments\"", "{}"));
    }
    let meta = match meta {
        Some(meta) if meta.starts_with('{') => kept(meta, |key| !OF_MESSAGE.contains(&key))?,
        Some(other) => vec![("\"_meta\"", other)],
        None => Vec::new(),
    };
    let whole = format!("[{{{}}},{{{}}}]", joined(&all), joined(&meta));
    canonical(&whole).map_err(|_| Refusal {
        code: code::INVALID_PARAMS,
        message: "`params` has a key twice, or is nested too deeply".to_owned(),
        id: None,
    })
}

fn kept(object: &str, keep: impl Fn(&str) -> bool) -> Result<Vec<(&str, &str)>, Refusal> {
    let all = entries(object)?.unwrap_or_default();
    Ok(all.into_iter().filter(|(key, _)| text(key).is_none_or(|key| keep(&key))).collect())
}

fn joined(members: &[(&str, &str)]) -> String {
    let members: Vec<_> = members.iter().map(|(key, value)| format!("{key}:{value}")).collect();
    members.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = r#"{"name":"pay","arguments":{"n":12345678901234567890,"to":["a"]},"_meta":{"progressToken":1}}"#;

    #[test]
    fn a_call_continues_with_equal_params_only() {
        let same = [
            FIRST,
            r#"{"arguments":{"to":["a"],"n":12345678901234567890},"name":"pay"}"#,
            r#"{"name":"pay","requestState":"s","inputResponses":{"a":{}},"arguments":{"n":12345678901234567890,"to":["\u0061"]}}"#,
            r#"{"name":"pay","arguments":{"n":12345678901234567890,"to":["a"]},"_meta":{"progressToken":"x","traceparent":"y","io.modelcontextprotocol/logLevel":"debug"}}"#,
        ];
        let other = [
            r#"{"name":"pay","arguments":{"n":12345678901234567891,"to":["a"]}}"#,
            r#"{"name":"pay","arguments":{"n":1.2345678901234567890e19,"to":["a"]}}"#,
            r#"{"name":"pay","arguments":{"n":12345678901234567890,"to":["b"]}}"#,
            r#"{"name":"pay","arguments":{"n":12345678901234567890,"to":"a"}}"#,
            r#"{"name":"pay","arguments":{"n":12345678901234567890,"to":["a"],"x":null}}"#,
            r#"{"name":"pay2","arguments":{"n":12345678901234567890,"to":["a"]}}"#,
            r#"{"name":"pay","task":{},"arguments":{"n":12345678901234567890,"to":["a"]}}"#,
            r#"{"name":"pay","more":1,"arguments":{"n":12345678901234567890,"to":["a"]}}"#,
            r#"{"name":"pay","Arguments":{},"arguments":{"n":12345678901234567890,"to":["a"]}}"#,
            r#"{"name":"pay","arguments":{"n":12345678901234567890,"to":["a"]},"_meta":{"task":1}}"#,
            r#"{"name":"pay"}"#,
        ];
        let first = same_params(FIRST).unwrap();
        for params in same {
            assert_eq!(same_params(params).unwrap(), first, "{params}");
        }
        for params in other {
            assert_ne!(same_params(params).unwrap(), first, "{params}");
        }
        assert_eq!(
            same_params(r#"{"name":"a"}"#).unwrap(),
            same_params(r#"{"name":"a","arguments":{ }}"#).unwrap()
        );
        assert!(same_params(r#"{"name":"a","arguments":{"k":1,"\u006b":2}}"#).is_err());
    }
}
