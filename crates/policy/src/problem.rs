//! Problems of a document: what is wrong, where, and what to write instead.
//!
//! Invariant: a problem has a position, a stable [`Code`], a message and a hint. Start at
//! [`Problem::render`].

use serde::Serialize;

use crate::{Code, Severity, Span};

/// An error or a warning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The stable code, `TG0001`…
    pub code: Code,
    /// Error or warning.
    pub severity: Severity,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong: lowercase, no final stop, the user's input in backticks.
    pub message: String,
    /// What to do about it, "did you mean" included.
    pub hint: String,
    /// The bytes meant, for editors and the caret.
    #[serde(skip)]
    pub span: Span,
}

impl Problem {
    /// `file:line:column`, the source line and a caret, for a terminal.
    pub fn render(&self, file: &str, source: &str) -> String {
        let word = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let (shown, before, width) = self.excerpt(source);
        let Self { line, column, message, hint, .. } = self;
        let gutter = " ".repeat(line.to_string().len());
        let (code, indent, caret) = (self.code.as_str(), " ".repeat(before), "^".repeat(width));
        format!(
            "{file}:{line}:{column}: {word}[{code}]: {message}\n\
             {line} | {shown}\n\
             {gutter} | {indent}{caret}\n\
             {gutter} = hint: {hint}\n"
        )
    }

    /// The part of the line around the position, and the offset and width of the caret.
    fn excerpt(&self, source: &str) -> (String, usize, usize) {
        const WIDTH: usize = 120;
        let line = source.lines().nth(self.line.saturating_sub(1)).unwrap_or_default();
        let at = self.column.saturating_sub(1);
        let from = at.saturating_sub(WIDTH / 2);
        let shown: String = line
            .chars()
            .skip(from)
            .take(WIDTH)
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let before = at - from;
        let room = shown.chars().count().saturating_sub(before).max(1);
        let wide = source
            .get(self.span.start..self.span.end)
            .map_or(1, |text| text.lines().next().unwrap_or_default().trim_end().chars().count());
        (shown, before, wide.clamp(1, room))
    }
}

/// Collects problems while a document is read, and knows where its lines begin.
#[derive(Debug)]
pub(crate) struct Findings<'s> {
    source: &'s str,
    line_starts: Vec<usize>,
    list: Vec<Problem>,
    errors: usize,
    warnings: usize,
}

/// Most problems of a severity; the rest is dropped so that a hostile document stays cheap.
const MOST: usize = 200;

impl<'s> Findings<'s> {
    pub(crate) fn new(source: &'s str) -> Self {
        let breaks = source.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1);
        Self {
            source,
            line_starts: std::iter::once(0).chain(breaks).collect(),
            list: Vec::new(),
            errors: 0,
            warnings: 0,
        }
    }

    pub(crate) fn add(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        // Counted separately: warnings must not displace the error that rejects the document.
        let count = match code.severity() {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        *count += 1;
        if *count > MOST {
            return;
        }
        let (line, column) = self.position(span.start);
        let (message, hint) = (message.into(), hint.into());
        self.list.push(Problem {
            code,
            severity: code.severity(),
            line,
            column,
            message,
            hint,
            span,
        });
    }

    /// Line and column, both from 1.
    /// The line of a byte, from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= at).max(1)
    }

    pub(crate) fn position(&self, at: usize) -> (usize, usize) {
        let line = self.line(at);
        let start = self.line_starts.get(line - 1).copied().unwrap_or_default();
        let column =
            self.source.get(start..at).map_or_else(|| at - start, |text| text.chars().count());
        (line, column + 1)
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// All problems in the order of the source.
    pub(crate) fn finish(mut self) -> Vec<Problem> {
        self.list.sort_by(|a, b| {
            (a.span.start, a.code, &a.message).cmp(&(b.span.start, b.code, &b.message))
        });
        self.list.dedup();
        self.list
    }
}

/// At most `most` candidates that were probably meant, the closest first.
pub fn similar<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
    most: usize,
) -> Vec<&'c str> {
    let lower = word.to_lowercase();
    if lower.len() > 64 {
        return Vec::new();
    }
    let close = |c: &'c str| {
        let name = c.to_lowercase();
        // Of `server__tool`, the tool alone is often what was typed.
        let own = name.split_once("__").map_or(name.as_str(), |(_, own)| own);
        let distance = |name: &str| strsim::damerau_levenshtein(&lower, name);
        let limit = |name: &str| 1 + name.chars().count() / 4;
        let whole = Some(distance(&name)).filter(|d| *d <= limit(&name));
        let bare = Some(distance(own)).filter(|d| *d <= limit(own));
        whole.into_iter().chain(bare).min().map(|d| (d, c))
    };
    let mut found: Vec<(usize, &str)> = candidates.into_iter().filter_map(close).collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().take(most).map(|(_, c)| c).collect()
}

/// The candidate that was probably meant, if one is close.
pub(crate) fn nearest<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    let lower = word.to_lowercase();
    if lower.len() > 64 {
        return None;
    }
    candidates
        .into_iter()
        .map(|c| (strsim::damerau_levenshtein(&lower, &c.to_lowercase()), c))
        .filter(|(distance, c)| *distance <= 1 + c.chars().count() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}
