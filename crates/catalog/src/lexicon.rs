//! The words the classifier knows: English verbs with their forms, Russian stems, nouns.
//!
//! A verb has a class and a kind. The lists are data; what a word means in its place is decided in
//! `name` and `prose`.

mod english;
mod nouns;
mod russian;

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::FixedState;

use crate::class::Class;

pub(crate) use nouns::{Nouns, nouns};

/// How far a word alone can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A verb and nothing else: `delete`.
    Verb,
    /// A verb that is a noun just as often: `list`, `charge`, `update`.
    Both,
    /// A verb whose effect depends on its object: `close`, `reset`, `manage`.
    Vague,
}

/// The form in which a verb was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `delete`
    Base,
    /// `deletes`
    Third,
    /// `deleting`, `deletion`
    Gerund,
}

/// A verb in one of its forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verb {
    pub(crate) base: &'static str,
    pub(crate) class: Class,
    pub(crate) kind: Kind,
    pub(crate) form: Form,
}

type Table<V> = HashMap<&'static str, V, FixedState>;

static VERBS: LazyLock<HashMap<String, Verb, FixedState>> = LazyLock::new(|| {
    let mut table = HashMap::with_hasher(FixedState::default());
    let mut add = |word: String, verb: Verb| {
        table.entry(word).or_insert(verb);
    };
    for (class, kind, words) in english::VERBS {
        for base in words.split_whitespace() {
            let verb = |form| Verb { base, class: *class, kind: *kind, form };
            add(base.to_owned(), verb(Form::Base));
            add(third(base), verb(Form::Third));
            for gerund in gerunds(base) {
                add(gerund, verb(Form::Gerund));
            }
        }
    }
    for (noun, base) in english::NOUNS_OF_VERBS {
        let found = english::VERBS
            .iter()
            .find(|(_, _, words)| words.split_whitespace().any(|word| word == *base));
        if let Some((class, kind, _)) = found {
            add((*noun).to_owned(), Verb { base, class: *class, kind: *kind, form: Form::Gerund });
        }
    }
    table
});

/// What a first word makes of each second word.
type Phrases = HashMap<String, Vec<(&'static str, Verb)>, FixedState>;

static PHRASES: LazyLock<Phrases> = LazyLock::new(|| {
    let mut table = Phrases::with_hasher(FixedState::default());
    for (first, second, base) in english::PHRASES {
        let Some(verb) = VERBS.get(*base) else { continue };
        let mut add = |word: String, form| {
            table.entry(word).or_default().push((*second, Verb { form, ..*verb }));
        };
        add((*first).to_owned(), Form::Base);
        add(third(first), Form::Third);
        gerunds(first).for_each(|gerund| add(gerund, Form::Gerund));
    }
    table
});

static STEMS: LazyLock<Table<(Class, Kind, &'static str)>> = LazyLock::new(|| {
    let mut table = HashMap::with_hasher(FixedState::default());
    for (class, kind, words) in russian::STEMS {
        for word in words.split_whitespace() {
            let (stem, base) = word.split_once(':').unwrap_or((word, word));
            table.insert(stem, (*class, *kind, base));
        }
    }
    table
});

/// The verb that a word in lower case is.
#[inline]
pub(crate) fn verb(word: &str) -> Option<Verb> {
    if word.is_ascii() { VERBS.get(word).copied() } else { russian(word) }
}

/// The verb that two words in lower case are: `tears down`.
#[inline]
pub(crate) fn phrasal(word: &str, follower: Option<&str>) -> Option<Verb> {
    let follower = follower?;
    let seconds = PHRASES.get(word)?;
    let is_second = |second: &str| {
        follower == second
            || follower.strip_suffix("es").or(follower.strip_suffix('s')) == Some(second)
    };
    seconds.iter().find(|(second, _)| is_second(second)).map(|(_, verb)| *verb)
}

fn russian(word: &str) -> Option<Verb> {
    if !russian::may_be_verb(word) {
        return None;
    }
    // The longest stem wins: `перезапис` before `перезап`.
    let ends = word.char_indices().map(|(at, c)| at + c.len_utf8()).take(russian::LONGEST);
    let stem = ends.filter_map(|end| STEMS.get(word.get(..end)?)).last()?;
    let (class, kind, base) = *stem;
    Some(Verb { base, class, kind, form: russian::form(word) })
}

/// Whether a verb with this object buys or sells: `place_stock_order`, `close_position`.
pub(crate) fn trades(verb: &str, head: Nouns, all: Nouns) -> bool {
    let orders = matches!(
        verb,
        "place" | "submit" | "send" | "create" | "replace" | "modify" | "execute" | "cancel"
    );
    (orders && head.has(Nouns::ORDER) && all.has(Nouns::TRADED))
        || (verb == "place" && head.has(Nouns::ORDER))
        || (verb == "checkout" && head.has(Nouns::ORDER.and(Nouns::CART)))
        || (matches!(verb, "execute" | "place" | "make" | "open" | "submit" | "enter")
            && head.has(Nouns::DEAL))
        || (matches!(verb, "close" | "open") && head.has(Nouns::POSITION))
        || (verb == "exercise" && all.has(Nouns::TRADED))
}

/// Whether a verb for reading takes or gives back money with this object.
pub(crate) fn takes_money(verb: &str, all: Nouns) -> bool {
    (verb == "capture" && all.has(Nouns::MONEY)) || (verb == "вернуть" && all.has(Nouns::CASH))
}

/// What a verb means with an object that gives it another class: to format a disk, to format a date.
pub(crate) fn means(verb: &str, head: Nouns) -> Option<Class> {
    match verb {
        "format" if head.has(Nouns::MEDIUM) => Some(Class::Destructive),
        "format" | "convert" if head.has(Nouns::VALUE) => Some(Class::Read),
        _ => None,
    }
}

/// `deletes`, `copies`, `pushes`.
fn third(base: &str) -> String {
    let stem = base.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u']));
    match stem {
        Some(stem) => format!("{stem}ies"),
        None if base.ends_with(['s', 'x', 'z', 'o'])
            || base.ends_with("ch")
            || base.ends_with("sh") =>
        {
            format!("{base}es")
        }
        None => format!("{base}s"),
    }
}

/// `deleting`, `running`; both spellings where a last letter may be doubled.
fn gerunds(base: &str) -> impl Iterator<Item = String> {
    let plain = match base.strip_suffix('e').filter(|stem| !stem.ends_with(['e', 'o', 'y'])) {
        Some(stem) => format!("{stem}ing"),
        None => format!("{base}ing"),
    };
    let doubled = base
        .chars()
        .last()
        .filter(|last| matches!(last, 'b' | 'd' | 'g' | 'l' | 'm' | 'n' | 'p' | 'r' | 't'))
        .map(|last| format!("{base}{last}ing"));
    std::iter::once(plain).chain(doubled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_are_found_in_their_forms() {
        for (word, base, form) in [
            ("delete", "delete", Form::Base),
            ("deletes", "delete", Form::Third),
            ("deleting", "delete", Form::Gerund),
            ("deletion", "delete", Form::Gerund),
            ("copies", "copy", Form::Third),
            ("pushes", "push", Form::Third),
            ("running", "run", Form::Gerund),
            ("удаляет", "удалить", Form::Third),
            ("удалить", "удалить", Form::Base),
            ("удаление", "удалить", Form::Gerund),
            ("возвращает", "вернуть", Form::Third),
        ] {
            let found = verb(word).unwrap_or_else(|| panic!("{word}"));
            assert_eq!((found.base, found.form), (base, form), "{word}");
        }
        for word in ["deleted", "getter", "dropdown", "удалённый", "удаленных", "остатки", "", "ё"]
        {
            assert_eq!(verb(word), None, "{word}");
        }
    }
}
