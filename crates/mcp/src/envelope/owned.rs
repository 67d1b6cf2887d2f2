//! A request that owns its text, for work that outlives the body it came in, and for requests that
//! toolgate writes itself. It is not parsed again.

use std::borrow::Cow;
use std::ops::Range;

use toolgate_json::edit::offset;
use toolgate_json::quote;

use super::Request;

/// A request and where its parts are.
#[derive(Debug, Clone)]
pub struct OwnedRequest {
    raw: String,
    id: Range<usize>,
    method: Box<str>,
    params: Option<Range<usize>>,
}

impl OwnedRequest {
    /// Writes a request; `params` is raw.
    pub fn write(number: u64, method: &str, params: Option<&str>) -> Self {
        let mut raw = String::from(r#"{"jsonrpc":"2.0","id":"#);
        let id = push(&mut raw, itoa::Buffer::new().format(number));
        raw.push_str(r#","method":"#);
        raw.push_str(&quote(method));
        let params = params.map(|params| {
            raw.push_str(r#","params":"#);
            push(&mut raw, params)
        });
        raw.push('}');
        Self { raw, id, method: method.into(), params }
    }

    /// The request as it was parsed.
    pub fn request(&self) -> Request<'_> {
        let part = |range: &Range<usize>| self.raw.get(range.clone()).unwrap_or_default();
        Request {
            raw: &self.raw,
            id: part(&self.id),
            method: Cow::Borrowed(&self.method),
            params: self.params.as_ref().map(part),
        }
    }
}

impl From<&Request<'_>> for OwnedRequest {
    fn from(request: &Request<'_>) -> Self {
        let place = |part: &str| {
            let start = offset(request.raw, part).unwrap_or_default();
            start..start + part.len()
        };
        Self {
            raw: request.raw.to_owned(),
            id: place(request.id),
            method: request.method.as_ref().into(),
            params: request.params.map(place),
        }
    }
}

fn push(raw: &mut String, part: &str) -> Range<usize> {
    let start = raw.len();
    raw.push_str(part);
    start..raw.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Incoming, Limits, Message, parse_agent};

    fn parse(raw: &str) -> Request<'_> {
        match parse_agent(raw.as_bytes(), &Limits::default()) {
            Ok(Incoming::One(Message::Request(request))) => request,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_owned_request_is_what_a_parser_reads() {
        for params in [None, Some(r#"{"uri":"a\"b"}"#)] {
            let written = OwnedRequest::write(7, "resources/read", params);
            assert_eq!(written.request(), parse(&written.raw));
        }
        let raw = r#"{"params":{"n":1.0},"id":"x","jsonrpc":"2.0","method":"to\u006fls/call"}"#;
        let parsed = parse(raw);
        assert_eq!(OwnedRequest::from(&parsed).request(), parsed);
    }
}
