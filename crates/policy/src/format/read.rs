//! The document as items with their comments, for the formatter.

use granit_parser::{Event, Parser, ScalarStyle, StructureStyle};

/// A whole document.
pub(super) struct Layout {
    pub(super) root: Value,
    /// Comments behind the last item.
    pub(super) footer: Vec<String>,
}

/// A member of a mapping or an element of a list.
pub(super) struct Item {
    /// Own-line comments above it.
    pub(super) above: Vec<String>,
    /// There was a blank line before it.
    pub(super) spaced: bool,
    /// As written; empty in lists.
    pub(super) key: String,
    pub(super) value: Value,
    /// The comment on its line.
    pub(super) beside: Option<String>,
}

pub(super) enum Value {
    /// One line, as written.
    Scalar(String),
    /// A text of several lines.
    Text(String),
    List(Vec<Item>, bool),
    Map(Vec<Item>, bool),
}

/// All comments, sorted: they may move by a line, but none may be lost.
pub(super) fn comments(source: &str) -> Vec<String> {
    let mut found: Vec<String> = Parser::new_from_str(source)
        .filter_map(Result::ok)
        .filter_map(|(event, _)| match event {
            Event::Comment(text, _) => Some(text.trim().to_owned()),
            _ => None,
        })
        .collect();
    found.sort();
    found
}

/// Reads the items; `None` for what the formatter leaves alone.
pub(super) fn items(source: &str) -> Option<Layout> {
    let mut events = Vec::new();
    for next in Parser::new_from_str(source) {
        let (event, span) = next.ok()?;
        let range = span.byte_range()?;
        let line = span.start.line();
        match event {
            Event::DocumentStart(true, _) => return None,
            Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(..)
            | Event::DocumentEnd => {}
            event => events.push(Token { event, line, start: range.start, end: range.end }),
        }
    }
    let mut reader =
        Reader { source, tokens: events.into_iter().peekable(), pending: Vec::new(), blank: false };
    reader.take_comments(None);
    let root = reader.value()?;
    let mut beside = None;
    reader.take_comments(Some(&mut beside));
    let mut footer = reader.pending;
    footer.splice(0..0, beside);
    Some(Layout { root, footer })
}

struct Token<'s> {
    event: Event<'s>,
    line: usize,
    start: usize,
    end: usize,
}

struct Reader<'s, I: Iterator<Item = Token<'s>>> {
    source: &'s str,
    tokens: std::iter::Peekable<I>,
    /// Own-line comments that wait for their item.
    pending: Vec<String>,
    /// A blank line stood before the first of them.
    blank: bool,
}

impl<'s, I: Iterator<Item = Token<'s>>> Reader<'s, I> {
    /// Comments up to the next token. One that shares a line with an item belongs to it.
    fn take_comments(&mut self, beside: Option<&mut Option<String>>) {
        let mut beside = beside;
        while let Some(token) = self.tokens.next_if(|t| matches!(t.event, Event::Comment(..))) {
            let Event::Comment(text, _) = &token.event else { return };
            let text = format!("#{}", text.trim_end());
            match &mut beside {
                Some(slot) if slot.is_none() && !self.starts_line(token.start) => {
                    **slot = Some(text);
                }
                _ => {
                    if self.pending.is_empty() {
                        self.blank = self.after_blank(token.line);
                    }
                    self.pending.push(text);
                }
            }
        }
    }

    fn starts_line(&self, at: usize) -> bool {
        let before = self.source.get(..at).unwrap_or_default();
        before.rsplit('\n').next().is_none_or(|line| line.trim().is_empty())
    }

    fn after_blank(&self, line: usize) -> bool {
        line >= 2 && self.source.lines().nth(line - 2).is_some_and(|l| l.trim().is_empty())
    }

    fn value(&mut self) -> Option<Value> {
        let token = self.tokens.next()?;
        Some(match token.event {
            Event::Scalar(text, style, ..) => {
                let raw = self.source.get(token.start..token.end)?.trim_end();
                match style {
                    ScalarStyle::Literal | ScalarStyle::Folded => Value::Text(text.into_owned()),
                    _ if raw.contains('\n') => {
                        let mut quoted = String::new();
                        toolgate_json::push_quoted(&text, &mut quoted);
                        Value::Scalar(quoted)
                    }
                    _ => Value::Scalar(raw.to_owned()),
                }
            }
            Event::SequenceStart(style, ..) => {
                Value::List(self.collect(false)?, style == StructureStyle::Flow)
            }
            Event::MappingStart(style, ..) => {
                Value::Map(self.collect(true)?, style == StructureStyle::Flow)
            }
            _ => return None,
        })
    }

    fn collect(&mut self, keyed: bool) -> Option<Vec<Item>> {
        let mut items: Vec<Item> = Vec::new();
        loop {
            match items.last_mut() {
                Some(Item { beside, .. }) => {
                    let mut slot = beside.take();
                    self.take_comments(Some(&mut slot));
                    if let Some(last) = items.last_mut() {
                        last.beside = slot;
                    }
                }
                None => self.take_comments(None),
            }
            let next = self.tokens.peek()?;
            if matches!(next.event, Event::SequenceEnd | Event::MappingEnd) {
                self.tokens.next();
                return Some(items);
            }
            let spaced = if self.pending.is_empty() {
                let line = next.line;
                self.after_blank(line)
            } else {
                self.blank
            };
            let above = std::mem::take(&mut self.pending);
            let mut beside = None;
            let key = if keyed {
                let Value::Scalar(key) = self.value()? else { return None };
                self.take_comments(Some(&mut beside));
                key
            } else {
                String::new()
            };
            let value = self.value()?;
            items.push(Item { above, spaced, key, value, beside });
        }
    }
}
