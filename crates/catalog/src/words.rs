//! The words of an identifier.
//!
//! A word ends at anything but a letter, where small letters are followed by a capital
//! (`deleteAccount`), where capitals are followed by a capitalised word (`DROPTable`), and where the
//! script changes at a capital (`HTTPЗапрос`). A digit ends a word too.

use smallvec::SmallVec;
use unicode_script::{Script, UnicodeScript as _};

/// Words in lower case.
#[derive(Debug, Default)]
pub(crate) struct Words {
    text: String,
    ends: SmallVec<[usize; 16]>,
}

/// What to do with capitals that are followed by small letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capitals {
    /// The last capital belongs to the small letters: `DROPTable` is `drop table`.
    Title,
    /// The word ends with the capitals: `DROPtable` is `drop table`.
    Hard,
}

impl Words {
    pub(crate) fn of(name: &str, capitals: Capitals) -> Self {
        let mut words = Self { text: String::with_capacity(name.len()), ends: SmallVec::new() };
        let mut before = [None, None];
        let mut rest = name.chars().peekable();
        while let Some(c) = rest.next() {
            let is_letter = c.is_alphabetic();
            if !is_letter || begins(c, before, rest.peek().copied(), capitals) {
                words.end();
            }
            if c.is_ascii() && is_letter {
                words.text.push(c.to_ascii_lowercase());
            } else if is_letter {
                words.text.extend(c.to_lowercase());
            }
            before = [before[1], Some(c)];
        }
        words.end();
        words
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, at: usize) -> Option<&str> {
        let end = *self.ends.get(at)?;
        let start = at.checked_sub(1).and_then(|at| self.ends.get(at)).copied().unwrap_or(0);
        self.text.get(start..end)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    fn end(&mut self) {
        if self.ends.last().copied().unwrap_or(0) < self.text.len() {
            self.ends.push(self.text.len());
        }
    }
}

/// Whether a name has capitals that are followed by small letters, so that [`Capitals`] matters.
pub(crate) fn has_capital_runs(name: &str) -> bool {
    let mut run = 0;
    name.chars().any(|c| {
        let found = run >= 2 && c.is_lowercase();
        run = if c.is_uppercase() { run + 1 } else { 0 };
        found
    })
}

fn begins(c: char, before: [Option<char>; 2], after: Option<char>, capitals: Capitals) -> bool {
    let [two, one] = before;
    let Some(one) = one else { return false };
    if c.is_uppercase() {
        let title = capitals == Capitals::Title
            && one.is_uppercase()
            && after.is_some_and(char::is_lowercase);
        one.is_lowercase() || title || changes_script(one, c)
    } else {
        capitals == Capitals::Hard
            && c.is_lowercase()
            && one.is_uppercase()
            && two.is_some_and(char::is_uppercase)
    }
}

fn changes_script(one: char, two: char) -> bool {
    if one.is_ascii() && two.is_ascii() {
        return false;
    }
    let of = |c: char| match c.script() {
        Script::Common | Script::Inherited => None,
        script => Some(script),
    };
    matches!((of(one), of(two)), (Some(one), Some(two)) if one != two)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split() {
        for (name, expected) in [
            ("delete_thing", "delete thing"),
            ("deleteThing", "delete thing"),
            ("Delete-File", "delete file"),
            ("DROPTable", "drop table"),
            ("tableDROP", "table drop"),
            ("get2delete", "get delete"),
            ("HTTPЗапрос", "http запрос"),
            ("get_Остатки", "get остатки"),
            ("ПолучитьОстатки", "получить остатки"),
            ("1C:Предприятие", "c предприятие"),
            ("", ""),
            ("__", ""),
            ("a", "a"),
        ] {
            let words = Words::of(name, Capitals::Title);
            assert_eq!(words.iter().collect::<Vec<_>>().join(" "), expected, "{name}");
        }
        let hard = Words::of("DROPtable", Capitals::Hard);
        assert_eq!(hard.iter().collect::<Vec<_>>(), ["drop", "table"]);
        assert!(has_capital_runs("DROPtable") && !has_capital_runs("dropTable"));
    }
}
