//! Globs: `*` any run, `?` one character, `[abc]`, `[a-z]`, `[!a]`, `\` escapes. Case-sensitive.
//!
//! Matching is linear in practice and quadratic at worst (one remembered `*`), never exponential.

use std::fmt::{self, Write as _};

use toolgate_json::fold;

use crate::uri;

/// Why a text is not a glob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    /// `**`.
    #[error("`**` is not supported; one `*` matches any run")]
    DoubleStar,
    /// A brace.
    #[error("`{0}` is not supported; write one entry for each name")]
    Brace(char),
    /// An escape at the end.
    #[error("`\\` at the end escapes nothing")]
    TrailingEscape,
    /// A class that is not closed.
    #[error("`[` is never closed; write `\\[` for the character itself")]
    OpenClass,
    /// A class without characters.
    #[error("`[]` matches nothing")]
    EmptyClass,
    /// A range whose end is before its start.
    #[error("the range `{0}-{1}` is reversed")]
    Range(char, char),
}

/// A compiled glob.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Glob {
    parts: Vec<Part>,
    /// Literal text every match starts with.
    pub(crate) prefix: String,
    /// Literal text every match ends with, when there is a `*` before it.
    pub(crate) suffix: String,
    /// How many literal characters it has.
    pub(crate) literals: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Part {
    Literal(char),
    One,
    Run,
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl Glob {
    /// Parses a glob.
    pub fn parse(text: &str) -> Result<Self, GlobError> {
        parts(text, true).map(Self::of)
    }

    /// A glob that was checked before: `**`, `{` and `}` are allowed, and text that is not well
    /// formed matches only itself.
    pub fn lenient(text: &str) -> Self {
        Self::of(parts(text, false).unwrap_or_else(|_| text.chars().map(Part::Literal).collect()))
    }

    fn of(parts: Vec<Part>) -> Self {
        let literal = |part: &Part| match part {
            Part::Literal(c) => Some(*c),
            _ => None,
        };
        let prefix: String = parts.iter().map_while(literal).collect();
        let mut suffix: Vec<char> = parts.iter().rev().map_while(literal).collect();
        suffix.reverse();
        let literals = parts.iter().filter_map(literal).count();
        Self { prefix, suffix: suffix.into_iter().collect(), literals, parts }
    }

    /// The glob for names that are folded ([`fold`]): it matches what a name that this one matches
    /// may fold to.
    pub(crate) fn folded(&self) -> Self {
        let mut parts = Vec::new();
        let mut rest = self.parts.as_slice();
        while let Some((first, behind)) = rest.split_first() {
            let Part::Literal(_) = first else {
                parts.push(first.folded());
                rest = behind;
                continue;
            };
            let run: String = rest.iter().map_while(Part::literal).collect();
            let after = rest.get(run.chars().count()..).unwrap_or_default();
            let folded = fold_run(&run, parts.is_empty(), after.is_empty());
            parts.extend(folded.chars().map(Part::Literal));
            rest = after;
        }
        // Characters that fold to nothing may have stood between two runs.
        parts.dedup_by(|a, b| *a == Part::Run && *b == Part::Run);
        Self::of(parts)
    }

    /// The glob for URIs in their normal form ([`uri::literal_uri`]): its literal text is normalised, up
    /// to the last whole segment before a wildcard.
    pub(crate) fn of_uris(&self) -> Self {
        let text: String = self.parts.iter().map_while(Part::literal).collect();
        let mut rest = self.parts.get(text.chars().count()..).unwrap_or_default();
        let end = if rest.is_empty() { text.len() } else { text.rfind('/').map_or(0, |at| at + 1) };
        let (head, tail) = text.split_at_checked(end).unwrap_or((&text, ""));
        let head = uri::literal_uri(head);
        let mut tail = uri::decoded(tail);
        // Scheme and authority are in lower case.
        if head.is_empty() || (head.ends_with("//") && head != "file:///") {
            tail = tail.to_lowercase();
        }
        let mut parts: Vec<Part> = head.chars().chain(tail.chars()).map(Part::Literal).collect();
        while let Some((first, behind)) = rest.split_first() {
            let Part::Literal(_) = first else {
                parts.push(first.clone());
                rest = behind;
                continue;
            };
            let run: String = rest.iter().map_while(Part::literal).collect();
            rest = rest.get(run.chars().count()..).unwrap_or_default();
            parts.extend(uri::decoded(&run).chars().map(Part::Literal));
        }
        Self::of(parts)
    }

    /// The one name it matches, if it has no wildcard.
    pub(crate) fn exact(&self) -> Option<&str> {
        (self.literals == self.parts.len()).then_some(self.prefix.as_str())
    }

    /// Whether it matches every name.
    pub(crate) fn is_everything(&self) -> bool {
        self.parts == [Part::Run]
    }

    /// Whether it is `text*` and everything `other` matches starts with that text.
    pub(crate) fn is_prefix_of(&self, other: &Glob) -> bool {
        let plain = self.literals + 1 == self.parts.len() && self.parts.last() == Some(&Part::Run);
        plain && other.prefix.starts_with(&self.prefix)
    }

    /// Whether it matches `text`.
    pub fn matches(&self, text: &str) -> bool {
        // Most keys are plain names.
        if let Some(name) = self.exact() {
            return name == text;
        }
        let mut parts = self.parts.as_slice();
        let mut text = text.chars();
        // Where to go on after a mismatch: behind the last `*`, one character further.
        let mut retry: Option<(&[Part], std::str::Chars<'_>)> = None;
        loop {
            match parts.split_first() {
                Some((Part::Run, behind)) => {
                    if behind.is_empty() {
                        return true;
                    }
                    parts = behind;
                    retry = Some((behind, text.clone()));
                    continue;
                }
                Some((part, behind)) => {
                    let mut ahead = text.clone();
                    if ahead.next().is_some_and(|c| part.accepts(c)) {
                        text = ahead;
                        parts = behind;
                        continue;
                    }
                }
                None if text.clone().next().is_none() => return true,
                None => {}
            }
            let Some((behind, from)) = &mut retry else { return false };
            if from.next().is_none() {
                return false;
            }
            parts = behind;
            text = from.clone();
        }
    }
}

/// The glob as text. Parsed, it gives the same glob.
impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escaped = |f: &mut fmt::Formatter<'_>, c: char, special: &str| {
            if special.contains(c) {
                f.write_char('\\')?;
            }
            f.write_char(c)
        };
        self.parts.iter().try_for_each(|part| match part {
            Part::Literal(c) => escaped(f, *c, "*?[\\"),
            Part::One => f.write_char('?'),
            Part::Run => f.write_char('*'),
            Part::Class { negated, ranges } => {
                f.write_str(if *negated { "[!" } else { "[" })?;
                for (low, high) in ranges {
                    escaped(f, *low, "]!-\\")?;
                    if low != high {
                        f.write_char('-')?;
                        escaped(f, *high, "]-\\")?;
                    }
                }
                f.write_char(']')
            }
        })
    }
}

/// Folds some of a name, which has no end to trim but at the ends of the whole.
fn fold_run(run: &str, first: bool, last: bool) -> String {
    let head: String = run.chars().take_while(|c| !first && c.is_whitespace()).collect();
    let tail: String = run.chars().rev().take_while(|c| !last && c.is_whitespace()).collect();
    let folded = fold(run);
    if folded.is_empty() && !head.is_empty() {
        return head;
    }
    format!("{head}{folded}{}", tail.chars().rev().collect::<String>())
}

impl Part {
    fn literal(&self) -> Option<char> {
        match self {
            Part::Literal(c) => Some(*c),
            _ => None,
        }
    }

    /// A class that takes a letter takes what the letter folds to. One that leaves letters out does
    /// not: what it takes of them is found by the name as it came.
    fn folded(&self) -> Self {
        let Part::Class { negated: false, ranges } = self else { return self.clone() };
        let mut all = ranges.clone();
        for (low, high) in ranges {
            // The ends of a range of letters, and letters on their own.
            let ends = [*low, *high].map(|c| {
                let text = c.to_string();
                let folded = fold(&text);
                let mut chars = folded.chars();
                chars.next().filter(|_| chars.next().is_none()).unwrap_or(c)
            });
            if ends[0] <= ends[1] {
                all.push((ends[0], ends[1]));
            }
        }
        Part::Class { negated: false, ranges: all }
    }

    fn accepts(&self, c: char) -> bool {
        match self {
            Part::Literal(l) => *l == c,
            Part::One => true,
            Part::Run => false,
            Part::Class { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
            }
        }
    }
}

/// The parts of a glob. With `strict`, also rejects what is more likely a mistake.
fn parts(text: &str, strict: bool) -> Result<Vec<Part>, GlobError> {
    let mut parts = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        parts.push(match c {
            '*' if strict && parts.last() == Some(&Part::Run) => {
                return Err(GlobError::DoubleStar);
            }
            '*' => Part::Run,
            '?' => Part::One,
            '[' => class(&mut rest, strict)?,
            '{' | '}' if strict => {
                return Err(GlobError::Brace(c));
            }
            '\\' => match rest.next() {
                Some(c) => Part::Literal(c),
                None => return Err(GlobError::TrailingEscape),
            },
            c => Part::Literal(c),
        });
    }
    Ok(parts)
}

fn class(
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
    strict: bool,
) -> Result<Part, GlobError> {
    let negated = rest.next_if_eq(&'!').is_some();
    let mut ranges = Vec::new();
    loop {
        let low = match rest.next() {
            None => return Err(GlobError::OpenClass),
            Some(']') if ranges.is_empty() => return Err(GlobError::EmptyClass),
            Some(']') => return Ok(Part::Class { negated, ranges }),
            Some('\\') => rest.next().ok_or(GlobError::OpenClass)?,
            Some(c) => c,
        };
        let mut high = low;
        if rest.next_if_eq(&'-').is_some() {
            match rest.next() {
                None => return Err(GlobError::OpenClass),
                // A `-` at the end is literal.
                Some(']') => {
                    ranges.extend([(low, low), ('-', '-')]);
                    return Ok(Part::Class { negated, ranges });
                }
                Some('\\') => high = rest.next().ok_or(GlobError::OpenClass)?,
                Some(c) => high = c,
            }
        }
        if strict && high < low {
            return Err(GlobError::Range(low, high));
        }
        ranges.push((low, high));
    }
}

#[cfg(test)]
mod tests;
