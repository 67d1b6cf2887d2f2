//! The YAML document as a tree in which every key and value has its position.
//!
//! Nothing is typed here: a scalar keeps its spelling and whether it was quoted, and the readers
//! interpret it. Duplicate keys are reported and stay in the tree, so that one mistake does not
//! hide the next.
//!
//! Invariant: the tree has at most [`MAX_NODES`] nodes and [`MAX_DEPTH`] levels, aliases expanded.
//! Start at [`parse`].

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span as RawSpan};

use crate::finding::{Finding, MAX_FINDINGS, Span};
use crate::problem::{Severity, code};
use crate::source::Source;

const MAX_NODES: usize = 100_000;
const MAX_DEPTH: usize = 64;

/// A value of the document.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

/// The kind of a value, as far as YAML defines it.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Null,
    Scalar(Scalar),
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        /// Reported and not read: duplicates, keys that are not text.
        dropped: Vec<Entry>,
    },
}

/// A scalar as written.
#[derive(Debug, Clone)]
pub(crate) struct Scalar {
    pub(crate) text: String,
    /// Not quoted, so it may be a number or a boolean.
    pub(crate) plain: bool,
}

/// One `key: value`.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) value: Node,
}

/// A key; keys are always text.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) span: Span,
}

/// Parses the only document of `source`. Findings that leave a tree go to `findings` too; `None`
/// means that there is no tree.
pub(crate) fn parse(source: &Source, findings: &mut Vec<Finding>) -> Option<Node> {
    let options = granit_parser::options! {
        emit_comments: false,
        emit_unresolved_aliases: true,
        // Above our own limit, so that ours is reported.
        flow_nesting_limit: 2 * MAX_DEPTH,
        block_nesting_limit: 2 * MAX_DEPTH,
    };
    let mut builder = Builder {
        events: Parser::new_from_str_with_options(&source.text, options),
        source,
        findings,
        anchors: HashMap::new(),
        nodes: 0,
    };
    match builder.document() {
        Ok(node) => Some(node),
        Err(stop) => {
            findings.push(stop.into_finding(source));
            None
        }
    }
}

/// Why the tree cannot be built.
enum Stop {
    Syntax(ScanError),
    TooLarge(Span, &'static str),
}

struct Builder<'a> {
    events: Parser<'a, granit_parser::StrInput<'a>>,
    source: &'a Source,
    findings: &'a mut Vec<Finding>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
}

impl<'a> Builder<'a> {
    fn document(&mut self) -> Result<Node, Stop> {
        let mut root = None;
        while let Some((event, span)) = self.next()? {
            match event {
                Event::DocumentStart(..) if root.is_some() => {
                    let message = "a second document in one file";
                    self.report(code::UNSUPPORTED_YAML, place(&span), message, "remove `---`");
                    break;
                }
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
                Event::StreamEnd => break,
                _ => root = Some(self.node(event, span, 0)?),
            }
        }
        let nothing = Span { start: 0, end: 0, line: 1, column: 1 };
        Ok(root.unwrap_or(Node { kind: Kind::Null, span: nothing }))
    }

    fn next(&mut self) -> Result<Option<(Event<'a>, RawSpan)>, Stop> {
        self.events.next().transpose().map_err(Stop::Syntax)
    }

    fn node(&mut self, event: Event<'a>, raw: RawSpan, depth: usize) -> Result<Node, Stop> {
        let mut span = place(&raw);
        self.charge(1, span)?;
        if depth > MAX_DEPTH {
            return Err(Stop::TooLarge(span, "the file is nested more than 64 levels deep"));
        }
        if event.tag().is_some_and(|tag| !tag.is_yaml_core_schema()) {
            let hint = "write the value without the tag";
            self.report(code::UNSUPPORTED_YAML, span, "tags are not supported", hint);
        }
        let anchor = event.anchor_id();
        let kind = match event {
            Event::Scalar(text, style, ..) => scalar(text.into_owned(), style),
            Event::SequenceStart(..) => self.list(&mut span, depth)?,
            Event::MappingStart(..) => self.map(&mut span, depth)?,
            Event::Alias(id) => return self.alias(id, span),
            Event::UnresolvedAlias(name) => {
                let message = format!("`*{name}` has no anchor before it");
                self.report(
                    code::SYNTAX,
                    span,
                    &message,
                    "define it first with `&`, or quote the text",
                );
                Kind::Null
            }
            _ => Kind::Null,
        };
        let node = Node { kind, span };
        if let Some(id) = anchor {
            self.charge(size(&node), span)?;
            self.anchors.insert(id, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, span: &mut Span, depth: usize) -> Result<Kind, Stop> {
        let mut items: Vec<Node> = Vec::new();
        while let Some((event, raw)) = self.next()? {
            if matches!(event, Event::SequenceEnd) {
                span.end = end_of(&raw, items.last().map(|item| item.span), *span);
                break;
            }
            items.push(self.node(event, raw, depth + 1)?);
        }
        Ok(Kind::List(items))
    }

    fn map(&mut self, span: &mut Span, depth: usize) -> Result<Kind, Stop> {
        let (mut entries, mut dropped) = (Vec::<Entry>::new(), Vec::<Entry>::new());
        let mut lines = HashMap::new();
        while let Some((event, raw)) = self.next()? {
            if matches!(event, Event::MappingEnd) {
                let last = entries.iter().chain(&dropped).map(|entry| entry.value.span);
                span.end = end_of(&raw, last.max_by_key(|last| last.end), *span);
                break;
            }
            let key = self.node(event, raw, depth + 1)?;
            let Some((event, raw)) = self.next()? else { break };
            let value = self.node(event, raw, depth + 1)?;
            match self.key(key, &mut lines) {
                Ok(key) => entries.push(Entry { key, value }),
                Err(key) => dropped.push(Entry { key, value }),
            }
        }
        Ok(Kind::Map { entries, dropped })
    }

    /// The key as text; an error, after a report, for an unusable one. `lines` has the keys before
    /// it.
    fn key(&mut self, node: Node, lines: &mut HashMap<String, usize>) -> Result<Key, Key> {
        let span = node.span;
        let text = match node.kind {
            Kind::Scalar(scalar) => scalar.text,
            Kind::Null if span.end > span.start => {
                self.source.text.get(span.start..span.end).unwrap_or_default().to_owned()
            }
            _ => {
                self.report(code::WRONG_TYPE, span, "a key must be text", "write `key: value`");
                return Err(Key { text: String::new(), span });
            }
        };
        if text == "<<" {
            let hint = "merge keys are not part of YAML 1.2: repeat the keys, or use an alias for the whole value";
            self.report(code::UNSUPPORTED_YAML, span, "merge keys are not supported", hint);
            return Err(Key { text, span });
        }
        if let Some(line) = lines.get(&text) {
            // `KEY=value` in place of a key may contain a secret.
            let shown = text.split_once('=').map_or(text.as_str(), |(name, _)| name);
            let message = format!("`{shown}` is defined twice");
            let hint = format!("it is already on line {line}: keep one of them");
            self.report(code::DUPLICATE_KEY, span, &message, &hint);
            return Err(Key { text, span });
        }
        lines.insert(text.clone(), span.line);
        Ok(Key { text, span })
    }

    fn alias(&mut self, id: usize, span: Span) -> Result<Node, Stop> {
        let Some(node) = self.anchors.get(&id).cloned() else {
            self.report(
                code::SYNTAX,
                span,
                "an alias inside its own anchor",
                "write the value out",
            );
            return Ok(Node { kind: Kind::Null, span });
        };
        self.charge(size(&node), span)?;
        Ok(node)
    }

    fn charge(&mut self, nodes: usize, span: Span) -> Result<(), Stop> {
        self.nodes += nodes;
        if self.nodes > MAX_NODES {
            return Err(Stop::TooLarge(
                span,
                "the file has more than 100,000 values, counting aliases as often as they are used",
            ));
        }
        Ok(())
    }

    fn report(&mut self, code: &'static str, span: Span, message: &str, hint: &str) {
        if self.findings.len() >= MAX_FINDINGS {
            return;
        }
        let (message, hint) = (message.to_owned(), Some(hint.to_owned()));
        self.findings.push(Finding { severity: Severity::Error, code, span, message, hint });
    }
}

impl Stop {
    fn into_finding(self, source: &Source) -> Finding {
        let severity = Severity::Error;
        match self {
            Self::TooLarge(span, message) => {
                let hint = None;
                Finding { severity, code: code::TOO_LARGE, span, message: message.to_owned(), hint }
            }
            Self::Syntax(error) => {
                let span = place(&RawSpan::empty(*error.marker()));
                let hint = syntax_hint(&error, source, span);
                Finding { severity, code: code::SYNTAX, span, message: error.info(), hint }
            }
        }
    }
}

fn syntax_hint(error: &ScanError, source: &Source, span: Span) -> Option<String> {
    let start = source.text.get(..span.start)?.rfind('\n').map_or(0, |at| at + 1);
    let line = source.text.get(start..)?.lines().next()?;
    let indent = line.len() - line.trim_start().len();
    if line.get(..indent)?.contains('\t') {
        return Some("indent with spaces: YAML does not allow tabs there".to_owned());
    }
    error.info().contains("mapping values").then(|| "quote a value that has `: ` in it".to_owned())
}

fn scalar(text: String, style: ScalarStyle) -> Kind {
    let plain = style == ScalarStyle::Plain;
    match text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" if plain => Kind::Null,
        _ => Kind::Scalar(Scalar { text, plain }),
    }
}

fn size(node: &Node) -> usize {
    1 + match &node.kind {
        Kind::Null | Kind::Scalar(_) => 0,
        Kind::List(items) => items.iter().map(size).sum(),
        Kind::Map { entries, dropped } => {
            entries.iter().chain(dropped).map(|entry| 1 + size(&entry.value)).sum()
        }
    }
}

fn place(raw: &RawSpan) -> Span {
    let start = raw.start.byte_offset().unwrap_or_default();
    let end = raw.end.byte_offset().unwrap_or(start).max(start);
    Span { start, end, line: raw.start.line(), column: raw.start.col() + 1 }
}

/// A flow collection ends with its bracket; a block collection with its last child, not where the
/// next key begins.
fn end_of(closing: &RawSpan, last: Option<Span>, own: Span) -> usize {
    let closing = place(closing);
    if closing.end > closing.start {
        return closing.end;
    }
    last.map_or(own.end, |last| last.end.max(own.start))
}
