//! The requests of a load, and the checks of their answers.

use std::borrow::Cow;
use std::sync::OnceLock;

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::client::Received;
use crate::echo::content;

/// The request to repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadRequest {
    /// `tools/call echo` with a text that names client and request.
    Echo,
    /// `tools/list`, which must contain this many tools.
    List {
        /// How many tools there are.
        tools: usize,
    },
    /// `tools/call big`.
    Big {
        /// Bytes of text.
        size: usize,
    },
    /// `tools/call structured`.
    Structured {
        /// Bytes of structured content.
        size: usize,
    },
}

/// Makes requests and checks answers; shared by all clients.
#[derive(Debug)]
pub(super) struct Asker {
    ask: LoadRequest,
    prefix: String,
    /// The expected content of a large answer; for a list the first correct one.
    expected: OnceLock<String>,
}

/// One request and the expected content of its answer.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) body: Bytes,
    id: u64,
    arguments: String,
}

#[derive(Deserialize)]
struct Answer<'a> {
    id: u64,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CallResult<'a> {
    #[serde(borrow)]
    content: Vec<Block<'a>>,
    #[serde(borrow, rename = "structuredContent")]
    structured: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

#[derive(Deserialize)]
struct ListResult<'a> {
    #[serde(borrow)]
    tools: &'a RawValue,
}

// === impl Asker ===

impl Asker {
    pub(super) fn new(ask: LoadRequest, prefix: &str) -> Self {
        let expected = match ask {
            LoadRequest::Echo | LoadRequest::List { .. } => OnceLock::new(),
            LoadRequest::Big { size } => content::big_text(size).into(),
            LoadRequest::Structured { size } => content::structured(size).into(),
        };
        Self { ask, prefix: prefix.to_owned(), expected }
    }

    /// The request number `sequence` of client number `client`. All clients use the same ids, so
    /// that an answer at the wrong client has the right id and the wrong payload.
    pub(super) fn request(&self, client: usize, sequence: u64) -> Request {
        let id = sequence + 1;
        let (tool, arguments) = match self.ask {
            LoadRequest::Echo => {
                ("echo", format!(r#"{{"text":"client {client} request {sequence}"}}"#))
            }
            LoadRequest::Big { size } => ("big", format!(r#"{{"size":{size}}}"#)),
            LoadRequest::Structured { size } => ("structured", format!(r#"{{"size":{size}}}"#)),
            LoadRequest::List { .. } => {
                let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#);
                return Request { body: body.into(), id, arguments: String::new() };
            }
        };
        let prefix = &self.prefix;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{prefix}{tool}","arguments":{arguments}}}}}"#
        );
        Request { body: body.into(), id, arguments }
    }

    /// Checks the answer to a request.
    pub(super) fn check(&self, request: &Request, received: &Received) -> Result<()> {
        let text = received.message(request.id)?;
        let answer: Answer<'_> = serde_json::from_str(&text)
            .with_context(|| format!("`{}` is not an answer", excerpt(&text)))?;
        ensure!(answer.id == request.id, "asked with id {}, got {}", request.id, answer.id);
        if let Some(error) = answer.error {
            bail!("the answer is an error: `{}`", excerpt(error.get()));
        }
        let result = answer.result.context("the answer has no result")?.get();
        match self.ask {
            LoadRequest::Echo => text_is(result, &request.arguments),
            LoadRequest::List { tools } => self.check_list(result, tools),
            LoadRequest::Big { .. } => text_is(result, self.expected()),
            LoadRequest::Structured { .. } => structured_is(result, self.expected()),
        }
    }

    fn check_list(&self, result: &str, count: usize) -> Result<()> {
        let tools = serde_json::from_str::<ListResult<'_>>(result)?.tools.get();
        if let Some(first) = self.expected.get() {
            ensure!(tools == first, "the list differs from the first one");
            return Ok(());
        }
        let listed = serde_json::from_str::<Vec<IgnoredAny>>(tools)?.len();
        ensure!(listed == count, "{listed} tools are listed instead of {count}");
        self.expected.get_or_init(|| tools.to_owned());
        Ok(())
    }

    fn expected(&self) -> &str {
        self.expected.get().map_or("", String::as_str)
    }
}

fn text_is(result: &str, expected: &str) -> Result<()> {
    let result: CallResult<'_> = serde_json::from_str(result)?;
    match result.content.as_slice() {
        [Block { text }] if text == expected => Ok(()),
        [Block { text }] => {
            bail!("the text is `{}` instead of `{}`", excerpt(text), excerpt(expected))
        }
        blocks => bail!("the result has {} blocks of content instead of one", blocks.len()),
    }
}

fn structured_is(result: &str, expected: &str) -> Result<()> {
    let result: CallResult<'_> = serde_json::from_str(result)?;
    let structured = result.structured.context("the result has no structuredContent")?.get();
    ensure!(structured == expected, "structuredContent is `{}`", excerpt(structured));
    Ok(())
}

/// The start of a text, short enough for an error message.
pub(super) fn excerpt(text: &str) -> &str {
    let end = text.char_indices().nth(120).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or(text)
}
