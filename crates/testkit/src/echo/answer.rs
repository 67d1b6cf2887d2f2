//! Answers of the echo server: from bytes to bytes, without I/O.
//!
//! Only the envelope is parsed; the id is returned in its original spelling. Results are prepared
//! as JSON and framed by a few bytes.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::StatusCode;
use http::header::HeaderValue;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::EchoOptions;
use super::body::Parts;
use super::content;

const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const LATEST: &str = "2025-11-25";
const DISCOVERED: &str = r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"public"}"#;

/// State shared by all connections.
#[derive(Debug)]
pub(super) struct State {
    pub(super) sse: bool,
    newer: bool,
    pub(super) calls: AtomicU64,
    pub(super) sessions: Mutex<HashSet<Vec<u8>>>,
    opened: AtomicU64,
    born: u128,
    tool_list: Bytes,
    large: Mutex<HashMap<(Large, usize), Bytes>>,
}

/// An HTTP response.
pub(super) enum Answer {
    /// 202: a notification or a response.
    Accepted,
    /// 200 with a JSON-RPC message; `opened` is the id of a session that this message opened.
    Message { parts: Parts, opened: Option<HeaderValue> },
    /// An HTTP status without a JSON-RPC message.
    Refused(StatusCode, &'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Large {
    Text,
    Structured,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct SizeArgument {
    size: usize,
}

#[derive(Deserialize)]
struct InitializeParams<'a> {
    #[serde(borrow, rename = "protocolVersion")]
    version: Cow<'a, str>,
}

/// A JSON-RPC error: code and message.
type Failure = (i32, &'static str);

// === impl State ===

impl State {
    pub(super) fn new(options: &EchoOptions) -> Self {
        let born = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_nanos());
        Self {
            sse: options.sse,
            newer: options.newer,
            calls: AtomicU64::new(0),
            sessions: Mutex::default(),
            opened: AtomicU64::new(0),
            born,
            tool_list: content::tool_list(options.tools).into(),
            large: Mutex::default(),
        }
    }

    /// Answers one POST body that came with this `Mcp-Session-Id`.
    pub(super) fn answer(&self, body: &[u8], session: Option<&[u8]>) -> Answer {
        let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(body) else {
            return Answer::Refused(StatusCode::BAD_REQUEST, "the body is not a JSON-RPC message");
        };
        let method = envelope.method.as_deref();
        if self.newer {
            return self.answer_newer(&envelope);
        }
        if method != Some("initialize") {
            let Some(session) = session else {
                return Answer::Refused(StatusCode::BAD_REQUEST, "Mcp-Session-Id is missing");
            };
            if !self.sessions.lock().contains(session) {
                return Answer::Refused(StatusCode::NOT_FOUND, "no such session");
            }
        }
        let (Some(id), Some(method)) = (envelope.id, method) else {
            return Answer::Accepted;
        };
        let params = envelope.params.map_or("{}", RawValue::get);
        if method == "initialize" {
            return self.initialize(id, params);
        }
        self.message(id, self.result(method, params))
    }

    /// Answers one POST body of protocol 2026-07-28.
    fn answer_newer(&self, envelope: &Envelope<'_>) -> Answer {
        let (Some(id), Some(method)) = (envelope.id, envelope.method.as_deref()) else {
            return Answer::Accepted;
        };
        let result = match method {
            "server/discover" => Ok(Bytes::from_static(DISCOVERED.as_bytes())),
            _ => self.result(method, envelope.params.map_or("{}", RawValue::get)),
        };
        let complete = |result: Bytes| {
            let rest = result.strip_prefix(b"{").unwrap_or_default();
            Bytes::from([br#"{"resultType":"complete","#, rest].concat())
        };
        self.message(id, result.map(complete))
    }

    fn message(&self, id: &RawValue, result: Result<Bytes, Failure>) -> Answer {
        let parts = match result {
            Ok(result) => self.frame(id, "result", result),
            Err((code, message)) => {
                let error = format!(r#"{{"code":{code},"message":"{message}"}}"#);
                self.frame(id, "error", error.into())
            }
        };
        Answer::Message { parts, opened: None }
    }

    fn initialize(&self, id: &RawValue, params: &str) -> Answer {
        let asked = serde_json::from_str::<InitializeParams<'_>>(params).ok();
        let version = asked
            .and_then(|asked| VERSIONS.into_iter().find(|known| *known == asked.version))
            .unwrap_or(LATEST);
        let result = format!(
            r#"{{"protocolVersion":"{version}","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"echo","version":"1.0.0"}}}}"#
        );
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        // The start time makes ids of an earlier server on the same port unknown to this one.
        let session = format!("echo-{:x}-{number}", self.born);
        let opened = HeaderValue::from_str(&session).ok();
        self.sessions.lock().insert(session.into_bytes());
        Answer::Message { parts: self.frame(id, "result", result.into()), opened }
    }

    fn result(&self, method: &str, params: &str) -> Result<Bytes, Failure> {
        match method {
            "tools/call" => self.call(params),
            "tools/list" => Ok(self.tool_list.clone()),
            "ping" => Ok(Bytes::from_static(b"{}")),
            _ => Err((-32601, "no such method")),
        }
    }

    fn call(&self, params: &str) -> Result<Bytes, Failure> {
        let call: CallParams<'_> =
            serde_json::from_str(params).map_err(|_| (-32602, "params do not fit tools/call"))?;
        let arguments = call.arguments.map_or("{}", RawValue::get);
        let result = match &*call.name {
            "echo" => Ok(text_result(arguments).into()),
            "big" => self.large(Large::Text, arguments),
            "structured" => self.large(Large::Structured, arguments),
            _ => Err((-32602, "no such tool")),
        }?;
        self.calls.fetch_add(1, Ordering::Relaxed);
        Ok(result)
    }

    fn large(&self, kind: Large, arguments: &str) -> Result<Bytes, Failure> {
        let size = match serde_json::from_str(arguments) {
            Ok(SizeArgument { size }) if size <= content::MAX_SIZE => size,
            _ => return Err((-32602, "size must be a whole number up to 67108864")),
        };
        let mut large = self.large.lock();
        let result = large.entry((kind, size)).or_insert_with(|| kind.result(size).into());
        Ok(result.clone())
    }

    /// Wraps a result or error in its envelope, and in an SSE event if required.
    fn frame(&self, id: &RawValue, member: &str, value: Bytes) -> Parts {
        let (before, after) =
            if self.sse { ("event: message\ndata: ", "}\n\n") } else { ("", "}") };
        let id = id.get();
        let head = format!(r#"{before}{{"jsonrpc":"2.0","id":{id},"{member}":"#);
        if value.len() > 16 * 1024 {
            return Parts::three([head.into(), value, Bytes::from_static(after.as_bytes())]);
        }
        let mut whole = Vec::with_capacity(head.len() + value.len() + after.len());
        whole.extend_from_slice(head.as_bytes());
        whole.extend_from_slice(&value);
        whole.extend_from_slice(after.as_bytes());
        Parts::one(whole.into())
    }
}

impl Large {
    fn result(self, size: usize) -> String {
        match self {
            Self::Text => text_result(&content::big_text(size)),
            Self::Structured => {
                let rows = content::structured(size);
                format!(r#"{{"content":[],"structuredContent":{rows},"isError":false}}"#)
            }
        }
    }
}

fn text_result(text: &str) -> String {
    // Serialising a string `Value` cannot fail.
    let quoted = serde_json::Value::from(text).to_string();
    format!(r#"{{"content":[{{"type":"text","text":{quoted}}}],"isError":false}}"#)
}
