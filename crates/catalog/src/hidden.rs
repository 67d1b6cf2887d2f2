//! Hidden text: characters in a definition that a person does not see, or takes for others.
//!
//! A model reads every character of a definition; a person who approves it must see the same.
//! Control characters, escapes, invisible and reordering characters are hidden text anywhere.
//! Confusables are hidden text inside one word: `dеlete` with a Cyrillic `е`. Cyrillic itself is
//! normal, emoji are normal, and a script may change at a capital (`HTTPЗапрос`).
//!
//! Invariant: every string of the definition is looked at, keys included.
//! Start at [`hidden_text`]; `invisible` knows characters, `mixed` knows words.

mod invisible;
mod mixed;

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};
use toolgate_json::scan::{Scan, Step};

pub(crate) use mixed::skeleton;

/// One hidden character of a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HiddenText {
    /// The field: its keys, parted by `/`.
    #[serde(rename = "where")]
    pub field: String,
    /// What kind of character it is.
    pub kind: HiddenKind,
    /// The text around it, drawn.
    pub shown: String,
}

/// Kinds of hidden characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HiddenKind {
    /// A control character.
    Control,
    /// The start of a terminal escape.
    Escape,
    /// A character that changes the direction of text.
    Bidi,
    /// A character without width.
    ZeroWidth,
    /// Another character that shows nothing.
    Invisible,
    /// A tag character.
    Tag,
    /// A variation selector.
    VariationSelector,
    /// A code point that is not a character.
    Noncharacter,
    /// A letter that looks like one of another script.
    Confusable,
}

/// How a string is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// A name or key.
    Identifier,
    /// Text for readers.
    Prose,
    /// A regular expression, in which letters of several scripts meet.
    Pattern,
}

/// Findings beyond this number are left out: one is enough to quarantine.
const MAX_FINDINGS: usize = 32;

/// Every hidden character of a definition (raw JSON), the first 32 of them.
pub fn hidden_text(definition: &str) -> Vec<HiddenText> {
    let mut found = Vec::new();
    // The common case costs one look at each byte: printable ASCII hides nothing.
    if definition.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t'))
        && !definition.contains("\\u")
        && !definition.contains("\\b")
        && !definition.contains("\\f")
    {
        return found;
    }
    let mut path: Vec<Option<String>> = Vec::new();
    for step in Scan::new(definition) {
        match step {
            Step::Object | Step::List => path.push(None),
            Step::ObjectEnd | Step::ListEnd => drop(path.pop()),
            Step::Key(raw) => {
                let key = raw.string().map_or_else(|_| raw.text.to_owned(), Cow::into_owned);
                let is_pattern = path.len() > 1 && parent(&path) == Some("patternProperties");
                look(
                    &key,
                    if is_pattern { Use::Pattern } else { Use::Identifier },
                    &path,
                    &mut found,
                );
                if let Some(last) = path.last_mut() {
                    *last = Some(key);
                }
            }
            Step::Text(raw) => {
                let text = raw.string().unwrap_or(Cow::Borrowed(raw.text));
                look(&text, use_of(&path), &path, &mut found);
            }
        }
        if found.len() >= MAX_FINDINGS {
            break;
        }
    }
    found.truncate(MAX_FINDINGS);
    found
}

/// A text with every hidden character written as `\u{…}`.
pub fn draw(text: &str) -> Cow<'_, str> {
    let mut drawn = String::new();
    let mut kept = 0;
    for (at, c, _) in find(text, Use::Prose) {
        drawn.push_str(text.get(kept..at).unwrap_or_default());
        push_drawn(c, &mut drawn);
        kept = at + c.len_utf8();
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    drawn.push_str(text.get(kept..).unwrap_or_default());
    Cow::Owned(drawn)
}

/// A text with every control and invisible character written as `\u{…}`. Confusables stay.
pub fn escape_invisible(text: &str) -> Cow<'_, str> {
    replace_invisible(text, push_drawn)
}

/// A text without control and invisible characters. Confusables stay.
pub fn strip_invisible(text: &str) -> Cow<'_, str> {
    replace_invisible(text, |_, _| {})
}

fn replace_invisible(text: &str, push: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let found = invisible::find(text);
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let (mut out, mut kept) = (String::with_capacity(text.len()), 0);
    for (at, c, _) in found {
        out.push_str(text.get(kept..at).unwrap_or_default());
        push(c, &mut out);
        kept = at + c.len_utf8();
    }
    out.push_str(text.get(kept..).unwrap_or_default());
    Cow::Owned(out)
}

fn push_drawn(c: char, out: &mut String) {
    out.extend(format!("\\u{{{:X}}}", u32::from(c)).chars());
}

fn look(text: &str, using: Use, path: &[Option<String>], found: &mut Vec<HiddenText>) {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return;
    }
    for (at, _, kind) in find(text, using).into_iter().take(MAX_FINDINGS) {
        found.push(HiddenText { field: field(path), kind, shown: excerpt(text, at, using) });
    }
}

/// Hidden characters of a text, in their order.
fn find(text: &str, using: Use) -> Vec<(usize, char, HiddenKind)> {
    let mut found = invisible::find(text);
    if using != Use::Pattern {
        found.extend(mixed::find(text, using == Use::Identifier));
        found.sort_by_key(|(at, _, _)| *at);
        found.dedup_by_key(|(at, _, _)| *at);
    }
    found
}

/// Some characters before and behind a hidden one, drawn.
fn excerpt(text: &str, at: usize, using: Use) -> String {
    const AROUND: usize = 24;
    let start = text.floor_char_boundary(at.saturating_sub(AROUND));
    let end = text.ceil_char_boundary((at + AROUND).min(text.len()));
    let mut drawn = String::new();
    let hidden = find(text, using);
    for (index, c) in text.char_indices().skip_while(|(index, _)| *index < start) {
        if index >= end {
            break;
        }
        if c.is_control() || hidden.iter().any(|(at, _, _)| *at == index) {
            push_drawn(c, &mut drawn);
        } else {
            drawn.push(c);
        }
    }
    drawn
}

fn parent(path: &[Option<String>]) -> Option<&str> {
    path.iter().rev().nth(1)?.as_deref()
}

fn use_of(path: &[Option<String>]) -> Use {
    match path {
        [Some(only)] if only == "name" => Use::Identifier,
        [.., Some(last)] if last == "pattern" => Use::Pattern,
        [.., Some(last), None] if last == "enum" || last == "required" => Use::Identifier,
        _ => Use::Prose,
    }
}

fn field(path: &[Option<String>]) -> String {
    let keys: Vec<&str> = path.iter().flatten().map(String::as_str).collect();
    draw(&keys.join("/")).into_owned()
}

impl HiddenKind {
    /// The name in output.
    pub fn as_str(self) -> &'static str {
        match self {
            HiddenKind::Control => "control character",
            HiddenKind::Escape => "terminal escape",
            HiddenKind::Bidi => "bidirectional control",
            HiddenKind::ZeroWidth => "zero-width character",
            HiddenKind::Invisible => "invisible character",
            HiddenKind::Tag => "tag character",
            HiddenKind::VariationSelector => "variation selector",
            HiddenKind::Noncharacter => "noncharacter",
            HiddenKind::Confusable => "confusable letter",
        }
    }
}

impl fmt::Display for HiddenKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for HiddenKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
