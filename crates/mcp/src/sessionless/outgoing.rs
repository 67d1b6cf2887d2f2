//! Requests to sessionless servers: the description of each request, in its body and in headers.

use std::borrow::Cow;

use bytes::Bytes;
use data_encoding::BASE64;
use toolgate_json::{Edit, EditError, entries, peek, quote, text};

use super::{VERSION, key, subject};
use crate::envelope::{Incoming, Message, parse_server};
use crate::{Limits, Refusal, code};

/// The client of a request.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// Raw JSON: the capabilities of the client.
    pub capabilities: &'a str,
    /// Raw JSON: name and version of the client.
    pub client_info: Option<&'a str>,
    /// The log level that it wants.
    pub log_level: Option<&'a str>,
}

/// The keys of `_meta` that describe a request.
const CLAIMS: [&str; 4] =
    [key::PROTOCOL_VERSION, key::CLIENT_CAPABILITIES, key::CLIENT_INFO, key::LOG_LEVEL];

/// The request `raw` with its description; unchanged if it has one.
pub fn described(raw: &str, about: &About<'_>) -> Result<Bytes, Refusal> {
    let params = peek(raw, &["params"])?;
    let meta = params.map(|params| peek(params, &["_meta"])).transpose()?.flatten();
    let version = meta.map(|meta| peek(meta, &[key::PROTOCOL_VERSION])).transpose()?.flatten();
    if version.is_some() {
        return Ok(Bytes::copy_from_slice(raw.as_bytes()));
    }
    let info = about.client_info.map(|info| format!(r#","{}":{info}"#, key::CLIENT_INFO));
    let level = about.log_level.map(quote);
    let level = level.map(|level| format!(r#","{}":{level}"#, key::LOG_LEVEL));
    let claims = format!(
        r#""{}":"{VERSION}","{}":{}{}{}"#,
        key::PROTOCOL_VERSION,
        key::CLIENT_CAPABILITIES,
        about.capabilities,
        info.unwrap_or_default(),
        level.unwrap_or_default()
    );
    let edit = Edit::new(raw);
    let edit = match (params, meta) {
        (_, Some(meta)) => match entries(meta)? {
            Some(all) if all.iter().any(|(key, _)| is_claim(key)) => {
                // A sessionful client describes itself in `initialize`; of two descriptions a server
                // would use one.
                edit.replace(meta, object(std::iter::once(claims).chain(unclaimed(all))))
            }
            Some(_) => edit.insert_raw(meta, &claims),
            None => edit.replace(meta, format!("{{{claims}}}")),
        },
        (Some(params), None) => edit.insert_raw(params, &format!(r#""_meta":{{{claims}}}"#)),
        (None, None) => {
            let object = raw.trim_start_matches([' ', '\t', '\n', '\r']);
            edit.insert_raw(object, &format!(r#""params":{{"_meta":{{{claims}}}}}"#))
        }
    };
    Ok(edit.map_err(cannot)?.finish())
}

/// The request `raw` for a sessionful server: without its description. `None` if it has none.
pub fn without_claims(raw: &str) -> Result<Option<Bytes>, Refusal> {
    let Some(meta) = peek(raw, &["params", "_meta"])? else { return Ok(None) };
    let all = entries(meta)?.unwrap_or_default();
    if !all.iter().any(|(key, _)| is_claim(key)) {
        return Ok(None);
    }
    let edit = Edit::new(raw).replace(meta, object(unclaimed(all))).map_err(cannot)?;
    Ok(Some(edit.finish()))
}

/// Whether a raw key of `_meta` is one of [`CLAIMS`].
fn is_claim(raw: &str) -> bool {
    text(raw).is_some_and(|key| CLAIMS.contains(&key.as_ref()))
}

/// The members of `_meta` that are not claims, unchanged.
fn unclaimed<'a>(all: Vec<(&'a str, &'a str)>) -> impl Iterator<Item = String> + 'a {
    let kept = all.into_iter().filter(|(key, _)| !is_claim(key));
    kept.map(|(key, value)| format!("{key}:{value}"))
}

fn object(members: impl Iterator<Item = String>) -> String {
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// The headers that repeat the message `raw`.
pub fn heads_of(raw: &str) -> Vec<(Cow<'static, str>, String)> {
    let mut heads = vec![("mcp-protocol-version".into(), VERSION.to_owned())];
    let (method, params) = match parse_server(raw.as_bytes(), &Limits::default()) {
        Ok(Incoming::One(Message::Request(request))) => (request.method, request.params),
        Ok(Incoming::One(Message::Notification(word))) => (word.method, word.params),
        _ => return heads,
    };
    let name = subject(&method, params.unwrap_or("{}")).ok().flatten();
    heads.push(("mcp-method".into(), header_value(&method).into_owned()));
    heads.extend(name.map(|name| ("mcp-name".into(), header_value(&name).into_owned())));
    heads
}

/// Text as a header value: unchanged, or in base64 if a reader would otherwise get another text.
pub fn header_value(text: &str) -> Cow<'_, str> {
    let plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let padded = text.starts_with(' ') || text.ends_with(' ');
    let imitates = text.starts_with("=?base64?") && text.ends_with("?=");
    if plain && !padded && !imitates {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("=?base64?{}?=", BASE64.encode(text.as_bytes())))
    }
}

fn cannot(error: EditError) -> Refusal {
    Refusal::new(code::INVALID_PARAMS, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABOUT: About<'_> =
        About { capabilities: r#"{"roots":{}}"#, client_info: None, log_level: Some("info") };

    #[test]
    fn a_request_describes_itself_once_and_the_rest_stays() {
        let claims = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/logLevel":"info""#;
        let cases = [
            (
                r#"{"id":1,"method":"m"}"#,
                format!(r#"{{"params":{{"_meta":{{{claims}}}}},"id":1,"method":"m"}}"#),
            ),
            (r#"{"params":{},"id":1}"#, format!(r#"{{"params":{{"_meta":{{{claims}}}}},"id":1}}"#)),
            (
                r#"{"params":{"a":1.0,"_meta":{"progressToken":7}}}"#,
                format!(r#"{{"params":{{"a":1.0,"_meta":{{{claims},"progressToken":7}}}}}}"#),
            ),
            (
                r#"{"params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"x":1},"k":1.0,"io.modelcontextprotocol/clientInfo":{}}}}"#,
                format!(r#"{{"params":{{"_meta":{{{claims},"k":1.0}}}}}}"#),
            ),
        ];
        for (raw, expected) in cases {
            let described_once = described(raw, &ABOUT).unwrap();
            assert_eq!(described_once, expected);
            let again = described(&expected, &About { log_level: None, ..ABOUT }).unwrap();
            assert_eq!(again, expected, "the description of a client stays");
            assert!(without_claims(&expected).unwrap().is_some());
        }
    }

    #[test]
    fn headers_repeat_the_body() {
        let cases = [
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, "tools/list", None),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"né"}}"#,
                "tools/call",
                Some("=?base64?bsOp?="),
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a:b c"}}"#,
                "resources/read",
                Some("a:b c"),
            ),
            (r#"{"jsonrpc":"2.0","method":"notifications/x"}"#, "notifications/x", None),
        ];
        for (raw, method, name) in cases {
            let heads = heads_of(raw);
            let of = |key: &str| {
                heads.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
            };
            assert_eq!(of("mcp-protocol-version"), Some(VERSION));
            assert_eq!((of("mcp-method"), of("mcp-name")), (Some(method), name), "{raw}");
        }
    }

    #[test]
    fn text_comes_back_out_of_headers() {
        for text in ["", "a", "a b", " a", "a ", "é", "a\nb", "=?base64?YQ==?=", "ab", "abcd"] {
            let value = header_value(text);
            assert!(value.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{value}");
            assert_eq!(super::super::header_text(&value).as_deref(), Some(text));
        }
    }
}
