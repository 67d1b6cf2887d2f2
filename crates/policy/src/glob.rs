//! Globs: `*` any run, `?` one character, `[abc]`, `[a-z]`, `[!a]`, `\` escapes. Case-sensitive.
//!
//! Matching is linear in practice and quadratic at worst (one remembered `*`), never exponential.

/// A compiled glob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glob {
    parts: Vec<Part>,
    /// Literal text every match starts with.
    pub(crate) prefix: String,
    /// Literal text every match ends with, when there is a `*` before it.
    pub(crate) suffix: String,
    /// How many literal characters it has.
    pub(crate) literals: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(char),
    One,
    Run,
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl Glob {
    /// Reads a glob, or says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            parts.push(match c {
                '*' if parts.last() == Some(&Part::Run) => {
                    return Err("`**` has no meaning, one `*` is any run".to_owned());
                }
                '*' => Part::Run,
                '?' => Part::One,
                '[' => class(&mut rest)?,
                '{' | '}' => {
                    return Err(format!(
                        "`{c}` has no meaning here, write one entry for each name"
                    ));
                }
                '\\' => match rest.next() {
                    Some(c) => Part::Literal(c),
                    None => return Err("`\\` at the end escapes nothing".to_owned()),
                },
                c => Part::Literal(c),
            });
        }
        let literal = |part: &Part| match part {
            Part::Literal(c) => Some(*c),
            _ => None,
        };
        let prefix: String = parts.iter().map_while(literal).collect();
        let mut suffix: Vec<char> = parts.iter().rev().map_while(literal).collect();
        suffix.reverse();
        let literals = parts.iter().filter_map(literal).count();
        Ok(Self { prefix, suffix: suffix.into_iter().collect(), literals, parts })
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

    pub(crate) fn matches(&self, text: &str) -> bool {
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

impl Part {
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

fn class(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Part, String> {
    const OPEN: &str = "`[` is never closed; write `\\[` for the character itself";
    let negated = rest.next_if_eq(&'!').is_some();
    let mut ranges = Vec::new();
    loop {
        let low = match rest.next() {
            None => return Err(OPEN.to_owned()),
            Some(']') if ranges.is_empty() => return Err("`[]` matches nothing".to_owned()),
            Some(']') => return Ok(Part::Class { negated, ranges }),
            Some('\\') => rest.next().ok_or(OPEN)?,
            Some(c) => c,
        };
        let mut high = low;
        if rest.next_if_eq(&'-').is_some() {
            match rest.next() {
                None => return Err(OPEN.to_owned()),
                // A `-` at the end stands for itself.
                Some(']') => {
                    ranges.extend([(low, low), ('-', '-')]);
                    return Ok(Part::Class { negated, ranges });
                }
                Some('\\') => high = rest.next().ok_or(OPEN)?,
                Some(c) => high = c,
            }
        }
        if high < low {
            return Err(format!("`{low}-{high}` runs backwards"));
        }
        ranges.push((low, high));
    }
}

#[cfg(test)]
mod tests;
