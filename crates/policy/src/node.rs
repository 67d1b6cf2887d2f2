//! A document as written: a small tree whose every node knows its bytes.
//!
//! YAML 1.2 and JSON (which YAML contains) go through one parser, so both are read alike. Numbers
//! keep their spelling: nothing here ever becomes a binary float.
//!
//! Invariant: depth, size and node count are bounded; anchors, aliases, tags and several documents
//! in one file are refused, so that what a person reads is what the gate does.

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle};
use toolgate_json::is_number;

use crate::{
    Code,
    problem::{Findings, Span},
};

/// Largest document read, in bytes.
pub const MAX_BYTES: usize = 4 << 20;
/// Deepest nesting read.
pub(crate) const MAX_DEPTH: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    /// A JSON number, spelled as a JSON number.
    Number(String),
    String(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) span: Span,
}

impl Node {
    /// What the node is, in words for a message.
    pub(crate) fn what(&self) -> &'static str {
        match self.kind {
            Kind::Null => "null",
            Kind::Bool(_) => "a boolean",
            Kind::Number(_) => "a number",
            Kind::String(_) => "a string",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a mapping",
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        match &self.kind {
            Kind::Map(members) => members.iter().find(|(k, _)| k.text == name).map(|(_, v)| v),
            _ => None,
        }
    }
}

/// Reads the text into a tree. `None` when there is no tree to go on with.
pub(crate) fn parse(source: &str, findings: &mut Findings<'_>) -> Option<Node> {
    if source.len() > MAX_BYTES {
        findings.add(
            Code::TooLarge,
            Span::default(),
            format!("the document has more than {MAX_BYTES} bytes (4 MiB)"),
            "split it into several policies, or use globs and classes instead of single tools",
        );
        return None;
    }
    Builder { findings, open: Vec::new(), root: None, documents: 0, failed: false }.run(source)
}

/// A collection whose end has not been seen.
enum Open {
    List { span: Span, items: Vec<Node> },
    Map { span: Span, members: Vec<(Key, Node)>, key: Option<Key> },
}

struct Builder<'f, 's> {
    findings: &'f mut Findings<'s>,
    open: Vec<Open>,
    root: Option<Node>,
    documents: usize,
    failed: bool,
}

impl Builder<'_, '_> {
    fn run(mut self, source: &str) -> Option<Node> {
        let options = granit_parser::options! {
            emit_comments: false,
            disallow_directives: true,
            emit_unresolved_aliases: true,
            flow_nesting_limit: MAX_DEPTH + 2,
            block_nesting_limit: MAX_DEPTH + 2,
        };
        for next in Parser::new_from_str_with_options(source, options) {
            match next {
                Ok((event, span)) => self.event(event, bytes(&span)),
                Err(error) => {
                    let at = error.marker().byte_offset().unwrap_or(source.len());
                    let place = Span { start: at, end: at };
                    if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) {
                        self.too_deep(place);
                    } else {
                        self.syntax(place, &error.info());
                    }
                    return None;
                }
            }
            if self.failed {
                return None;
            }
        }
        if self.root.is_none() {
            self.findings.add(
                Code::Syntax,
                Span::default(),
                "the document is empty",
                "a policy begins with `version: \"1\"` and `default: deny`",
            );
        }
        self.root
    }

    fn syntax(&mut self, span: Span, message: &str) {
        let mut message = message.trim_end_matches('.').to_owned();
        if let Some(first) = message.get_mut(0..1) {
            first.make_ascii_lowercase();
        }
        self.findings.add(
            Code::Syntax,
            span,
            message,
            "check quotes, brackets and indentation; a value with `: ` or ` #` in it needs quotes",
        );
    }

    fn too_deep(&mut self, span: Span) {
        self.findings.add(
            Code::TooLarge,
            span,
            format!("nested deeper than {MAX_DEPTH} levels"),
            "flatten the document; no policy needs that depth",
        );
    }

    fn event(&mut self, event: Event<'_>, span: Span) {
        if event.anchor_id().is_some_and(|id| id != 0) || event.tag().is_some() {
            self.refuse(span, "anchors and tags");
        }
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents == 2 {
                    self.refuse(span, "several documents in one file");
                    self.failed = true;
                }
            }
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                self.refuse(span, "aliases");
                self.place(Node { span, kind: Kind::Null });
            }
            Event::Scalar(text, style, ..) => self.scalar(text.into_owned(), style, span),
            Event::SequenceStart(..) => self.enter(Open::List { span, items: Vec::new() }, span),
            Event::MappingStart(..) => {
                self.enter(Open::Map { span, members: Vec::new(), key: None }, span);
            }
            Event::SequenceEnd | Event::MappingEnd => self.leave(span),
            _ => {}
        }
    }

    fn refuse(&mut self, span: Span, what: &str) {
        self.findings.add(
            Code::Unsupported,
            span,
            format!("{what} are not part of the policy language"),
            "write the value out where it is used",
        );
    }

    fn enter(&mut self, open: Open, span: Span) {
        if self.open.len() >= MAX_DEPTH {
            self.too_deep(span);
            self.failed = true;
            return;
        }
        if let Some(Open::Map { key: None, .. }) = self.open.last() {
            self.findings.add(
                Code::Syntax,
                span,
                "a list or mapping cannot be a key",
                "keys are plain words",
            );
            self.failed = true;
        }
        self.open.push(open);
    }

    fn leave(&mut self, end: Span) {
        let node = match self.open.pop() {
            Some(Open::List { span, items }) => {
                Node { span: cover(span, end), kind: Kind::List(items) }
            }
            Some(Open::Map { span, members, .. }) => {
                self.duplicates(&members);
                Node { span: cover(span, end), kind: Kind::Map(members) }
            }
            None => return,
        };
        self.place(node);
    }

    fn duplicates(&mut self, members: &[(Key, Node)]) {
        let mut seen = std::collections::HashMap::with_capacity(members.len());
        for (key, _) in members {
            if let Some(first) = seen.insert(key.text.as_str(), key.span) {
                let (line, _) = self.findings.position(first.start);
                self.findings.add(
                    Code::DuplicateKey,
                    key.span,
                    format!("`{}` stands here twice", key.text),
                    format!("the first one is on line {line}: merge the two"),
                );
            }
        }
    }

    fn place(&mut self, node: Node) {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map { members, key, .. }) => match key.take() {
                Some(key) => members.push((key, node)),
                // Aliases in key position end here; they have been reported.
                None => *key = Some(Key { text: String::new(), span: node.span }),
            },
        }
    }

    fn scalar(&mut self, text: String, style: ScalarStyle, span: Span) {
        if let Some(Open::Map { key: slot @ None, .. }) = self.open.last_mut() {
            *slot = Some(Key { text, span });
            return;
        }
        let kind =
            if style == ScalarStyle::Plain { self.plain(text, span) } else { Kind::String(text) };
        self.place(Node { span, kind });
    }

    /// YAML 1.2 core schema, minus number spellings that two readers read differently.
    fn plain(&mut self, text: String, span: Span) -> Kind {
        match text.as_str() {
            "" | "~" | "null" | "Null" | "NULL" => return Kind::Null,
            "true" | "True" | "TRUE" => return Kind::Bool(true),
            "false" | "False" | "FALSE" => return Kind::Bool(false),
            _ => {}
        }
        if is_number(&text) {
            return Kind::Number(text);
        }
        if looks_numeric(&text) {
            self.findings.add(
                Code::Number,
                span,
                format!("`{text}` is a number that not every reader reads alike"),
                "write it in plain decimal, or quote it if it is text",
            );
            // The document is refused; any number will do to look for further problems.
            return Kind::Number("1".to_owned());
        }
        Kind::String(text)
    }
}

fn bytes(span: &granit_parser::Span) -> Span {
    let range = span.byte_range().unwrap_or_default();
    Span { start: range.start, end: range.end }
}

fn cover(start: Span, end: Span) -> Span {
    Span { start: start.start, end: end.end.max(start.start) }
}

/// Spellings some YAML reader takes for a number although JSON does not: `010`, `0x1F`, `1_000`,
/// `+5`, `.5`, `5.`, `.inf`, `.nan`.
fn looks_numeric(text: &str) -> bool {
    let rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    let lower = rest.to_ascii_lowercase();
    if matches!(lower.as_str(), ".inf" | ".nan") {
        return true;
    }
    let radix = |prefix: &str, ok: fn(&u8) -> bool| {
        lower.strip_prefix(prefix).is_some_and(|d| !d.is_empty() && d.as_bytes().iter().all(ok))
    };
    if radix("0x", u8::is_ascii_hexdigit) || radix("0o", u8::is_ascii_digit) {
        return true;
    }
    let plain: String = lower.chars().filter(|c| *c != '_').collect();
    let starts = plain.starts_with(|c: char| c.is_ascii_digit())
        || (plain.starts_with('.') && plain.len() > 1);
    starts
        && plain.bytes().any(|b| b.is_ascii_digit())
        && plain.bytes().all(|b| b.is_ascii_digit() || b == b'.' || b == b'e')
        && plain.bytes().filter(|b| *b == b'.').count() <= 1
        && plain.bytes().filter(|b| *b == b'e').count() <= 1
        && !plain.ends_with('e')
}

impl Node {
    /// The value as JSON, numbers as spelled.
    pub(crate) fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    fn write_json(&self, out: &mut String) {
        match &self.kind {
            Kind::Null => out.push_str("null"),
            Kind::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
            Kind::Number(text) => out.push_str(text),
            Kind::String(text) => toolgate_json::push_quoted(text, out),
            Kind::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    item.write_json(out);
                }
                out.push(']');
            }
            Kind::Map(members) => {
                out.push('{');
                for (index, (key, node)) in members.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    toolgate_json::push_quoted(&key.text, out);
                    out.push(':');
                    node.write_json(out);
                }
                out.push('}');
            }
        }
    }
}
