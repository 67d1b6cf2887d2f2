//! Builds the tree from the parser's events.

use std::collections::HashMap;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span as RawSpan, StrInput};

use crate::{Entry, Issue, IssueKind, Key, Kind, Node, Scalar, Span};

/// What a document may contain.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Deepest nesting of lists and mappings.
    pub max_depth: usize,
    /// Most nodes; an expanded alias counts as often as it is used.
    pub max_nodes: usize,
    /// Refuse anchors, aliases, tags and directives, so that a document means what a person reads.
    /// Otherwise aliases are expanded and tags of the core schema ignored.
    pub strict: bool,
    /// Keep duplicates in the mapping after they were reported.
    pub keep_duplicates: bool,
}

/// Parses the only document of `text` and reports every issue. `None` means that there is no tree,
/// which was reported. An empty text is a null node.
pub fn parse(text: &str, rules: &Rules, report: &mut dyn FnMut(Issue)) -> Option<Node> {
    let options = granit_parser::options! {
        emit_comments: false,
        emit_unresolved_aliases: true,
        disallow_directives: rules.strict,
        // Above the limit of the rules, so that theirs is reported.
        flow_nesting_limit: 2 * rules.max_depth,
        block_nesting_limit: 2 * rules.max_depth,
    };
    let events = Parser::new_from_str_with_options(text, options);
    let mut builder = Builder { events, text, rules, report, anchors: HashMap::new(), nodes: 0 };
    match builder.document() {
        Ok(node) => Some(node),
        Err(issue) => {
            report(issue);
            None
        }
    }
}

struct Builder<'a> {
    events: Parser<'a, StrInput<'a>>,
    text: &'a str,
    rules: &'a Rules,
    report: &'a mut dyn FnMut(Issue),
    anchors: HashMap<usize, Node>,
    nodes: usize,
}

impl<'a> Builder<'a> {
    fn document(&mut self) -> Result<Node, Issue> {
        let mut root = None;
        while let Some((event, span)) = self.next()? {
            match event {
                Event::DocumentStart(..) if root.is_some() => {
                    self.report(IssueKind::SecondDocument, place(&span));
                    break;
                }
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
                Event::StreamEnd => break,
                _ => root = Some(self.node(event, span, 0)?),
            }
        }
        let start = Span { start: 0, end: 0, line: 1, column: 1 };
        Ok(root.unwrap_or(Node { kind: Kind::Null, span: start }))
    }

    fn next(&mut self) -> Result<Option<(Event<'a>, RawSpan)>, Issue> {
        self.events.next().transpose().map_err(|error| syntax(&error))
    }

    fn node(&mut self, event: Event<'a>, raw: RawSpan, depth: usize) -> Result<Node, Issue> {
        let mut span = place(&raw);
        self.charge(1, span)?;
        let anchor = event.anchor_id();
        self.check_features(&event, span);
        let kind = match event {
            Event::Scalar(text, style, ..) => scalar(text.into_owned(), style),
            Event::SequenceStart(..) => self.list(&mut span, depth)?,
            Event::MappingStart(..) => self.map(&mut span, depth)?,
            Event::Alias(_) | Event::UnresolvedAlias(_) if self.rules.strict => {
                self.refused_alias(span)
            }
            Event::Alias(id) => return self.alias(id, span),
            Event::UnresolvedAlias(name) => {
                self.report(IssueKind::UnknownAlias(name.into_owned()), span);
                Kind::Null
            }
            _ => Kind::Null,
        };
        let node = Node { kind, span };
        if let Some(id) = anchor.filter(|_| !self.rules.strict) {
            self.charge(size(&node), span)?;
            self.anchors.insert(id, node.clone());
        }
        Ok(node)
    }

    fn check_features(&mut self, event: &Event<'_>, span: Span) {
        let strict = self.rules.strict;
        if event.tag().is_some_and(|tag| strict || !tag.is_yaml_core_schema()) {
            self.report(IssueKind::Tag, span);
        }
        if strict && event.anchor_id().is_some() {
            self.report(IssueKind::Anchor, span);
        }
    }

    /// Reads on as if the alias were quoted text: unquoted globs begin with `*` too.
    fn refused_alias(&mut self, span: Span) -> Kind {
        let text = self.text.get(span.start..span.end).unwrap_or_default().to_owned();
        self.report(IssueKind::Alias(text.clone()), span);
        Kind::Scalar(Scalar { text, plain: true })
    }

    fn list(&mut self, span: &mut Span, depth: usize) -> Result<Kind, Issue> {
        self.check_depth(depth, *span)?;
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

    fn map(&mut self, span: &mut Span, depth: usize) -> Result<Kind, Issue> {
        self.check_depth(depth, *span)?;
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
                self.text.get(span.start..span.end).unwrap_or_default().to_owned()
            }
            _ => {
                self.report(IssueKind::KeyNotText, span);
                return Err(Key { text: String::new(), span });
            }
        };
        if text == "<<" && !self.rules.strict {
            self.report(IssueKind::MergeKey, span);
            return Err(Key { text, span });
        }
        if let Some(&first_line) = lines.get(&text) {
            self.report(IssueKind::DuplicateKey { name: text.clone(), first_line }, span);
            let key = Key { text, span };
            return if self.rules.keep_duplicates { Ok(key) } else { Err(key) };
        }
        lines.insert(text.clone(), span.line);
        Ok(Key { text, span })
    }

    fn alias(&mut self, id: usize, span: Span) -> Result<Node, Issue> {
        let Some(node) = self.anchors.get(&id).cloned() else {
            self.report(IssueKind::RecursiveAlias, span);
            return Ok(Node { kind: Kind::Null, span });
        };
        self.charge(size(&node), span)?;
        Ok(node)
    }

    fn check_depth(&self, depth: usize, span: Span) -> Result<(), Issue> {
        if depth >= self.rules.max_depth {
            return Err(Issue { kind: IssueKind::TooDeep, span });
        }
        Ok(())
    }

    fn charge(&mut self, nodes: usize, span: Span) -> Result<(), Issue> {
        self.nodes += nodes;
        if self.nodes > self.rules.max_nodes {
            return Err(Issue { kind: IssueKind::TooManyNodes, span });
        }
        Ok(())
    }

    fn report(&mut self, kind: IssueKind, span: Span) {
        (self.report)(Issue { kind, span });
    }
}

fn syntax(error: &ScanError) -> Issue {
    let kind = match error.kind() {
        ErrorKind::RecursionLimitExceeded => IssueKind::TooDeep,
        _ => IssueKind::Syntax(error.info()),
    };
    Issue { kind, span: place(&RawSpan::empty(*error.marker())) }
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

#[cfg(test)]
mod tests;
