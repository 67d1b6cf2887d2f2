//! Globs as in policies and in the configuration: `*` matches any run, `?` one character, `[abc]`,
//! `[a-z]`, `[!a]`, `\` escapes; case-sensitive.
//!
//! Matching is linear in practice and quadratic at worst (one remembered `*`), never exponential. A
//! malformed pattern matches only itself; the configuration rejects it earlier.

use std::str::Chars;

/// A compiled glob.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Glob(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Part {
    Literal(char),
    One,
    Run,
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl Glob {
    /// Compiles a pattern.
    pub fn new(pattern: &str) -> Self {
        Self(parse(pattern).unwrap_or_else(|| pattern.chars().map(Part::Literal).collect()))
    }

    /// Whether `text` matches.
    pub fn matches(&self, text: &str) -> bool {
        let (mut parts, mut text) = (self.0.as_slice(), text.chars());
        // Where to continue after a mismatch: after the last `*`, one character further.
        let mut retry: Option<(&[Part], Chars<'_>)> = None;
        loop {
            match parts.split_first() {
                Some((Part::Run, [])) => return true,
                Some((Part::Run, behind)) => {
                    parts = behind;
                    retry = Some((behind, text.clone()));
                    continue;
                }
                Some((part, behind)) => {
                    let mut ahead = text.clone();
                    if ahead.next().is_some_and(|c| part.accepts(c)) {
                        (text, parts) = (ahead, behind);
                        continue;
                    }
                }
                None if text.as_str().is_empty() => return true,
                None => {}
            }
            let Some((behind, from)) = &mut retry else { return false };
            if from.next().is_none() {
                return false;
            }
            (parts, text) = (behind, from.clone());
        }
    }
}

impl Part {
    fn accepts(&self, c: char) -> bool {
        match self {
            Self::Literal(literal) => *literal == c,
            Self::One => true,
            Self::Run => false,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
            }
        }
    }
}

fn parse(pattern: &str) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        parts.push(match c {
            '*' => Part::Run,
            '?' => Part::One,
            '\\' => Part::Literal(rest.next()?),
            '[' => class(&mut rest)?,
            c => Part::Literal(c),
        });
    }
    Some(parts)
}

fn class(rest: &mut Chars<'_>) -> Option<Part> {
    let negated = rest.as_str().starts_with('!');
    if negated {
        rest.next();
    }
    let mut ranges = Vec::new();
    loop {
        let low = match rest.next()? {
            ']' if ranges.is_empty() => return None,
            ']' => return Some(Part::Class { negated, ranges }),
            '\\' => rest.next()?,
            c => c,
        };
        // A `-` at the end is literal.
        let mut ahead = rest.clone();
        let high = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(high)) if high != ']' => {
                *rest = ahead;
                if high == '\\' { rest.next()? } else { high }
            }
            _ => low,
        };
        ranges.push((low, high));
    }
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[test]
    fn globs_match_as_written() {
        let cases = [
            ("*", "", true),
            ("trade_*", "trade_dev", true),
            ("trade_*", "trad", false),
            ("*_dev", "trade_dev", true),
            ("*a*b*", "xaybz", true),
            ("*a*b*", "xbya", false),
            ("?", "я", true),
            ("?", "", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[a-]", "-", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("База*", "База1", true),
            ("База", "база", false),
            ("[", "[", true),
            ("", "", true),
            ("", "x", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(Glob::new(pattern).matches(text), expected, "{pattern} {text}");
        }
    }
}
