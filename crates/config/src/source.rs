//! The text of a configuration file: decoding its bytes, and showing one of its lines.
//!
//! Invariant: a line is shown only with everything masked that may be a secret. Values are masked
//! by their position in the tree; lines outside the tree (syntax errors) by their appearance.
//! Start at [`decode`] and [`Source::snippet`].

use std::path::PathBuf;

use toolgate_policy::Severity;

use crate::finding::{Finding, Span};
use crate::problem::{Problem, Snippet, code};
use crate::secret_name::secret_name;

/// The largest file that is read.
pub(crate) const MAX_BYTES: usize = 4 * 1024 * 1024;

const MASK: &str = "***";

/// A decoded file and its masked ranges.
pub(crate) struct Source {
    pub(crate) file: PathBuf,
    pub(crate) text: String,
    masked: Masked,
}

enum Masked {
    /// No tree: mask by appearance.
    Unknown,
    /// Byte ranges of values that may be secret.
    Spans(Vec<(usize, usize)>),
}

impl Source {
    /// The byte order mark, if any, is not part of the text.
    pub(crate) fn new(file: PathBuf, text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).to_owned();
        Self { file, text, masked: Masked::Unknown }
    }

    /// Masks these byte ranges of values that may be secret ([`crate::mask`] finds them).
    pub(crate) fn mask(&mut self, spans: Vec<(usize, usize)>) {
        self.masked = Masked::Spans(spans);
    }

    /// The finding as a problem, with its source line.
    pub(crate) fn problem(&self, finding: Finding) -> Problem {
        let Finding { severity, code, span, message, hint } = finding;
        Problem {
            code,
            severity,
            file: self.file.clone(),
            line: span.line,
            column: span.column,
            message,
            hint,
            snippet: self.snippet(span),
        }
    }

    fn snippet(&self, span: Span) -> Option<Snippet> {
        let start = self.text.get(..span.start)?.rfind('\n').map_or(0, |at| at + 1);
        let line = self.text.get(start..)?.lines().next()?;
        let (shown, caret, until) = match &self.masked {
            Masked::Spans(spans) => {
                let window = self.window((start, start + line.len()), span.start);
                mask_spans(&self.text, window, spans, span)
            }
            Masked::Unknown => {
                let caret = line.get(..span.start - start).unwrap_or(line).chars().count();
                let hide = is_suspicious(&self.text, start, line);
                let shown = if hide { blotted(line) } else { line.to_owned() };
                let from = if caret > WIDTH { caret - WIDTH / 2 } else { 0 };
                let shown = shown.chars().skip(from).take(2 * WIDTH).collect();
                (shown, caret - from, caret - from)
            }
        };
        let width = until.saturating_sub(caret).max(1);
        // A tab would misplace the caret.
        Some(Snippet { line: shown.replace('\t', " "), caret, width })
    }

    /// The part of a line around `at` to show: a file may be one long line.
    fn window(&self, (start, end): (usize, usize), at: usize) -> (usize, usize) {
        let boundary = |wanted: usize| {
            (wanted..=end).find(|at| self.text.is_char_boundary(*at)).unwrap_or(end)
        };
        let from = if at - start > WIDTH { boundary(at - WIDTH / 2) } else { start };
        (from, boundary(end.min(from + 2 * WIDTH)))
    }
}

/// Half of the bytes that are shown of a long line.
const WIDTH: usize = 120;

/// Decodes bytes as UTF-8, or reports what they look like instead.
pub(crate) fn decode(file: PathBuf, bytes: &[u8]) -> Result<Source, Box<Problem>> {
    let refuse = |code, message: &str, hint: &str| {
        Box::new(Problem {
            code,
            severity: Severity::Error,
            file: file.clone(),
            line: 0,
            column: 0,
            message: message.to_owned(),
            hint: Some(hint.to_owned()),
            snippet: None,
        })
    };
    if bytes.len() > MAX_BYTES {
        return Err(refuse(
            code::TOO_LARGE,
            "the file is larger than 4 MiB",
            "move policies into files of their own: `policies: { name: { file: PATH } }`",
        ));
    }
    if is_utf16(bytes) {
        return Err(refuse(code::ENCODING, "the file is UTF-16, not UTF-8", SAVE_AS_UTF8));
    }
    match std::str::from_utf8(bytes) {
        Ok(_) if bytes.iter().take(128).any(|b| *b == 0) => {
            Err(refuse(code::ENCODING, "the file looks like UTF-16 without a mark", SAVE_AS_UTF8))
        }
        Ok(text) => Ok(Source::new(file, text)),
        Err(_) if looks_like_cp1251(bytes) => Err(refuse(
            code::ENCODING,
            "the file is not UTF-8; it looks like Windows-1251 (CP1251)",
            &format!(
                "convert it: `iconv -f CP1251 -t UTF-8 {} > utf8.yaml`, or save it as UTF-8 in the editor",
                file.display()
            ),
        )),
        Err(error) => {
            let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let line = good.split(|b| *b == b'\n').count();
            let message = format!("the file is not UTF-8: line {line} has bytes that are not text");
            Err(refuse(code::ENCODING, &message, SAVE_AS_UTF8))
        }
    }
}

const SAVE_AS_UTF8: &str = "save it as UTF-8 in the editor; in PowerShell: `Get-Content toolgate.yaml | Set-Content -Encoding utf8 utf8.yaml`";

/// Why bytes are not text in UTF-8, and what to do about it.
pub fn not_utf8(bytes: &[u8]) -> &'static str {
    if is_utf16(bytes) || bytes.iter().take(128).any(|byte| *byte == 0) {
        "it is UTF-16, not UTF-8; save it as UTF-8 in the editor, or convert it: \
         `iconv -f UTF-16 -t UTF-8 OLD > NEW`"
    } else if looks_like_cp1251(bytes) {
        "it is not UTF-8, it looks like Windows-1251 (CP1251); save it as UTF-8 in the editor, or \
         convert it: `iconv -f CP1251 -t UTF-8 OLD > NEW`"
    } else {
        "it is not UTF-8; save it as UTF-8 in the editor"
    }
}

fn is_utf16(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff])
}

/// In CP1251 Cyrillic letters are 0xC0..=0xFF; most high bytes of such a text are consecutive
/// letters, which broken UTF-8 never has.
fn looks_like_cp1251(bytes: &[u8]) -> bool {
    let letter = |b: &u8| *b >= 0xc0 || *b == 0xa8 || *b == 0xb8;
    let high = bytes.iter().filter(|b| **b >= 0x80).count();
    let letters = bytes.iter().filter(|b| letter(b)).count();
    let pairs = bytes.windows(2).filter(|pair| pair.iter().all(letter)).count();
    pairs > 0 && letters * 10 >= high * 9
}

/// The line with masked spans replaced; the caret's start and end, in characters of the result.
fn mask_spans(
    text: &str,
    (start, end): (usize, usize),
    spans: &[(usize, usize)],
    at: Span,
) -> (String, usize, usize) {
    let (mut shown, mut caret, mut until) = (String::new(), None, None);
    let mut masking = false;
    for (offset, character) in text.get(start..end).unwrap_or_default().char_indices() {
        let here = start + offset;
        let length = shown.chars().count();
        if here >= at.start {
            caret.get_or_insert(length);
        }
        if here >= at.end {
            until.get_or_insert(length);
        }
        let hidden = spans.iter().any(|(from, to)| (*from..*to).contains(&here));
        if hidden && !masking {
            shown.push_str(MASK);
        }
        if !hidden {
            shown.push(character);
        }
        masking = hidden;
    }
    let length = shown.chars().count();
    (shown, caret.unwrap_or(length), until.unwrap_or(length))
}

/// Words that make a line, or a block that begins with it, suspicious.
const SUSPICIOUS: [&str; 6] = ["bearer", "://", "env", "header", "args", "pass"];

/// Without a tree: whether the line at `start`, or one that it is indented under, mentions things
/// that may be secret, or has a long word with a digit in it.
fn is_suspicious(text: &str, start: usize, line: &str) -> bool {
    let speaks = |line: &str| {
        let lower = line.to_lowercase();
        secret_name(&lower) || SUSPICIOUS.iter().any(|word| lower.contains(word))
    };
    let random = |word: &str| word.len() >= 16 && word.chars().any(|c| c.is_ascii_digit());
    let in_word = |c: char| c.is_ascii_alphanumeric() || "+/=_-.".contains(c);
    if speaks(line) || line.split(|c| !in_word(c)).any(random) {
        return true;
    }
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut depth = indent(line);
    let above = text.get(..start).unwrap_or_default().lines().rev();
    for parent in above.filter(|line| !line.trim().is_empty()) {
        if indent(parent) < depth {
            depth = indent(parent);
            if speaks(parent) {
                return true;
            }
        }
    }
    false
}

/// The line with letters and digits of its value masked: quotes, brackets and colons are what a
/// syntax error is about.
fn blotted(line: &str) -> String {
    let value = match line.find(':') {
        Some(colon) if !line.trim_start().starts_with(['-', '"', '\'', '{', '[']) => colon,
        _ => 0,
    };
    let blot = |(at, c): (usize, char)| if at > value && c.is_alphanumeric() { 'x' } else { c };
    line.char_indices().map(blot).collect()
}
