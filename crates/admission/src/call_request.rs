//! An agent's request, parsed once where it enters.
//!
//! One pass over `params` and one over `_meta` find everything by which a request is limited,
//! routed, decided, counted and forwarded. The request travels as one value; no part of it is looked
//! up again.
//!
//! Invariant: parts are slices of the message, so that they can be replaced in it.
//!
//! Start at [`CallRequest::read`].

use std::borrow::Cow;

use toolgate_json::{members, text};
use toolgate_mcp::{OwnedRequest, Refusal, Request, code, method};

use crate::multi_round::MultiRound;

/// The key of `_meta` that names the task of a message.
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// An agent's request.
pub struct CallRequest<'a> {
    /// The whole message.
    pub raw: &'a str,
    /// The id as it is spelled in the message.
    pub raw_id: &'a str,
    /// The id under which the request is answered: for a sessionless client a unique one, otherwise
    /// that of the message.
    pub id: &'a str,
    /// The method's name.
    pub method: &'a str,
    /// The raw `params`.
    pub params: Option<&'a str>,
    /// The subject of the request.
    pub subject: Subject<'a>,
    /// The raw `params.arguments`.
    pub arguments: Option<&'a str>,
    /// The raw progress token.
    pub progress_token: Option<&'a str>,
    /// The raw id of the task that the request belongs to.
    pub related_task: Option<&'a str>,
    /// The raw `params.requestState`, which continues a call of protocol 2026-07-28.
    pub request_state: Option<&'a str>,
    /// The server's end of a call that may take several requests of its client.
    pub rounds: Option<MultiRound>,
}

/// The subject of a request, by its method.
#[derive(Debug, Clone)]
pub enum Subject<'a> {
    /// The tool in `params.name`.
    Tool(Option<RawText<'a>>),
    /// The prompt in `params.name`.
    Prompt(Option<RawText<'a>>),
    /// The resource in `params.uri`.
    Resource(Option<RawText<'a>>),
    /// The prompt or template in `params.ref`.
    Reference(Reference<'a>),
    /// The task in `params.taskId`.
    Task(Option<RawText<'a>>),
    /// The log level in `params.level`.
    Level(Option<RawText<'a>>),
    /// The method alone.
    Method,
}

/// A raw value that is expected to be a string.
#[derive(Debug, Clone)]
pub struct RawText<'a> {
    /// The raw JSON.
    pub raw: &'a str,
    /// Its text; `None` if it is not a string.
    pub text: Option<Cow<'a, str>>,
}

/// `params.ref` of a completion.
#[derive(Debug, Clone)]
pub struct Reference<'a> {
    /// The raw JSON; `None` if it is missing.
    pub raw: Option<&'a str>,
    /// Its `type`.
    pub kind: Option<RawText<'a>>,
    /// Its `name`.
    pub name: Option<RawText<'a>>,
    /// Its `uri`.
    pub uri: Option<RawText<'a>>,
}

impl<'a> CallRequest<'a> {
    /// Reads a request.
    pub fn read(request: &'a Request<'a>) -> Result<Self, Refusal> {
        let id = || Some(request.id.to_owned());
        Self::parse(request).map_err(|refusal| Refusal { id: id(), ..refusal })
    }

    fn parse(request: &'a Request<'a>) -> Result<Self, Refusal> {
        let params = request.params.unwrap_or("{}");
        let keys = ["name", "uri", "ref", "taskId", "level", "arguments", "requestState", "_meta"];
        let [name, uri, reference, task, level, arguments, request_state, meta] =
            members(params, keys)?;
        let [progress_token, related] = match meta {
            Some(meta) => members(meta, ["progressToken", RELATED_TASK])?,
            None => [None, None],
        };
        let [related_task] = related.map_or(Ok([None]), |related| members(related, ["taskId"]))?;
        let text_of = |raw: Option<&'a str>| raw.map(RawText::of);
        let subject = match request.method.as_ref() {
            method::TOOLS_CALL => Subject::Tool(text_of(name)),
            method::PROMPTS_GET => Subject::Prompt(text_of(name)),
            method::RESOURCES_READ
            | method::RESOURCES_SUBSCRIBE
            | method::RESOURCES_UNSUBSCRIBE => Subject::Resource(text_of(uri)),
            method::COMPLETION_COMPLETE => Subject::Reference(Reference::read(reference)?),
            method::LOGGING_SET_LEVEL => Subject::Level(text_of(level)),
            other if method::is_about_task(other) => Subject::Task(text_of(task)),
            _ => Subject::Method,
        };
        Ok(Self {
            raw: request.raw,
            raw_id: request.id,
            id: request.id,
            method: &request.method,
            params: request.params,
            subject,
            arguments,
            progress_token,
            related_task,
            request_state,
            rounds: None,
        })
    }

    /// An owned copy of the message.
    pub fn to_owned(&self) -> OwnedRequest {
        let Self { raw, raw_id: id, params, .. } = *self;
        OwnedRequest::from(&Request { raw, id, method: self.method.into(), params })
    }

    /// The refusal of a request that cannot be decided as it is written.
    pub fn unreadable(&self, why: &str) -> Refusal {
        let id = Some(self.id.to_owned());
        Refusal { code: code::INVALID_PARAMS, message: why.to_owned(), id }
    }
}

impl<'a> RawText<'a> {
    fn of(raw: &'a str) -> Self {
        Self { raw, text: text(raw) }
    }
}

impl<'a> Reference<'a> {
    fn read(raw: Option<&'a str>) -> Result<Self, Refusal> {
        let [kind, name, uri] =
            raw.map_or(Ok([None; 3]), |raw| members(raw, ["type", "name", "uri"]))?;
        let text_of = |raw: Option<&'a str>| raw.map(RawText::of);
        Ok(Self { raw, kind: text_of(kind), name: text_of(name), uri: text_of(uri) })
    }
}

#[cfg(test)]
mod tests {
    use toolgate_mcp::{Incoming, Limits, Message, parse_agent};

    use super::*;

    fn parse(raw: &str) -> Request<'_> {
        match parse_agent(raw.as_bytes(), &Limits::default()) {
            Ok(Incoming::One(Message::Request(request))) => request,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_part_of_a_call_is_read_in_one_pass() {
        let request = parse(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":7,"io.modelcontextprotocol/related-task":{"taskId":"t"}},"uri":"u","name":"\u0061","arguments":{"x":1.0},"requestState":"s"}}"#,
        );
        let read = CallRequest::read(&request).unwrap();
        let Subject::Tool(Some(RawText { raw, text })) = read.subject else { panic!("no tool") };
        assert_eq!((raw, text.as_deref()), (r#""\u0061""#, Some("a")));
        assert_eq!(read.arguments, Some(r#"{"x":1.0}"#));
        assert_eq!(read.progress_token, Some("7"));
        assert_eq!(read.related_task, Some(r#""t""#));
        assert_eq!(read.request_state, Some(r#""s""#));
    }

    #[test]
    fn the_method_determines_the_subject() {
        let params =
            r#"{"name":["a"],"uri":"u","taskId":"t","ref":{"type":"ref/prompt","name":"p"}}"#;
        let cases = [
            ("tools/call", "tool [\"a\"]"),
            ("prompts/get", "prompt [\"a\"]"),
            ("resources/read", "resource \"u\""),
            ("resources/unsubscribe", "resource \"u\""),
            ("tasks/result", "task \"t\""),
            ("tasks/delete", "task \"t\""),
            ("tasks/list", "method"),
            ("completion/complete", "reference \"p\""),
            ("logging/setLevel", "level -"),
            ("x/y", "method"),
        ];
        for (method, expected) in cases {
            let raw =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            let request = parse(&raw);
            let read = CallRequest::read(&request).unwrap();
            let of =
                |word: &Option<RawText<'_>>| word.as_ref().map_or("-", |word| word.raw).to_owned();
            let found = match &read.subject {
                Subject::Tool(word) => format!("tool {}", of(word)),
                Subject::Prompt(word) => format!("prompt {}", of(word)),
                Subject::Resource(word) => format!("resource {}", of(word)),
                Subject::Reference(reference) => format!("reference {}", of(&reference.name)),
                Subject::Task(word) => format!("task {}", of(word)),
                Subject::Level(word) => format!("level {}", of(word)),
                Subject::Method => "method".to_owned(),
            };
            assert_eq!(found, expected, "{method}");
        }
    }
}
