//! Rewriting the few parts of a message that change in transit.

use bytes::Bytes;
use toolgate_json::Edit;
use toolgate_mcp::{
    Incoming, Limits, Message, Payload, Refusal, Response, code, parse_server, write,
};

use crate::event_buffer::EventBuffer;

/// The message `raw` with each part replaced. Parts are slices of `raw`.
pub fn rewrite(raw: &str, changes: &[(&str, &str)]) -> Result<Bytes, Refusal> {
    let mut edit = Edit::new(raw);
    for (part, with) in changes {
        edit = edit.replace(part, *with).map_err(|error| Refusal {
            code: code::INVALID_REQUEST,
            message: error.to_string(),
            id: None,
        })?;
    }
    Ok(edit.finish())
}

/// Rewrites a server's message for an agent; a message that cannot be rewritten is dropped.
pub fn push(buffer: &EventBuffer, raw: &str, changes: &[(&str, &str)]) {
    match rewrite(raw, changes) {
        Ok(body) => buffer.push(body),
        Err(refusal) => {
            tracing::warn!(why = refusal.message, "message dropped: cannot be rewritten")
        }
    }
}

/// The error object, if the body is one JSON-RPC error.
pub(crate) fn error_in(body: &[u8]) -> Option<&str> {
    match parse_server(body, &Limits::default()) {
        Ok(Incoming::One(Message::Response(Response {
            payload: Payload::Error(error), ..
        }))) => Some(error),
        _ => None,
    }
}

/// An answer with the server's own error object.
pub fn with_error(id: &str, error: &str) -> Bytes {
    Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
}

/// The answer to a message that is rejected.
pub fn refused(refusal: &Refusal) -> Bytes {
    write::error(refusal.id.as_deref(), refusal.code, &refusal.message, None)
}
