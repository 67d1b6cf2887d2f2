//! The texts of the console, one catalogue per language.
//!
//! Invariant: both catalogues have the same messages with the same variables (tests below). A message
//! that is missing is shown by its key, never as an error.

use std::sync::LazyLock;

use fluent_bundle::concurrent::FluentBundle;
use fluent_bundle::{FluentArgs, FluentResource, FluentValue};
use unic_langid::LanguageIdentifier;

const EN: &str = include_str!("../texts/en.ftl");
const RU: &str = include_str!("../texts/ru.ftl");

/// A language of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Language {
    #[default]
    English,
    Russian,
}

static ENGLISH: LazyLock<FluentBundle<FluentResource>> = LazyLock::new(|| bundle("en", EN));
static RUSSIAN: LazyLock<FluentBundle<FluentResource>> = LazyLock::new(|| bundle("ru", RU));

impl Language {
    /// Its tag.
    pub(crate) fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Russian => "ru",
        }
    }

    /// The language of a tag.
    pub(crate) fn of_tag(tag: &str) -> Option<Self> {
        match tag {
            "en" => Some(Self::English),
            "ru" => Some(Self::Russian),
            _ => None,
        }
    }

    /// The first language of `Accept-Language` that the console has; weights are ignored, because
    /// browsers send languages in the order of preference.
    pub(crate) fn accepted(header: &str) -> Option<Self> {
        let tags = header.split(',').filter_map(|part| part.split(';').next());
        let mut known = tags.map(|tag| tag.trim().to_ascii_lowercase()).filter_map(|tag| {
            let main = tag.split('-').next().unwrap_or_default().to_owned();
            Self::of_tag(&main)
        });
        known.next()
    }

    /// The text of a message.
    pub(crate) fn text(self, key: &str, args: &[(&str, FluentValue<'_>)]) -> String {
        let bundle = match self {
            Self::English => &*ENGLISH,
            Self::Russian => &*RUSSIAN,
        };
        let pattern = bundle.get_message(key).and_then(|message| message.value());
        let Some(pattern) = pattern else { return key.to_owned() };
        let mut given = FluentArgs::new();
        for (name, value) in args {
            given.set(*name, value.clone());
        }
        let mut errors = Vec::new();
        bundle.format_pattern(pattern, Some(&given), &mut errors).into_owned()
    }
}

/// A number for Fluent.
pub(crate) fn number(n: usize) -> FluentValue<'static> {
    let n = u32::try_from(n).unwrap_or(u32::MAX);
    FluentValue::from(f64::from(n))
}

fn bundle(tag: &str, source: &str) -> FluentBundle<FluentResource> {
    let language: LanguageIdentifier = tag.parse().unwrap_or_default();
    let mut bundle = FluentBundle::new_concurrent(vec![language]);
    // Templates isolate foreign text with <bdi>.
    bundle.set_use_isolating(false);
    let resource = FluentResource::try_new(source.to_owned()).unwrap_or_else(|(good, _)| good);
    if bundle.add_resource(resource).is_err() {
        tracing::error!(tag, "a text of the console is defined twice");
    }
    bundle
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Messages and the variables of each.
    fn messages(source: &str) -> BTreeMap<String, BTreeSet<String>> {
        assert!(FluentResource::try_new(source.to_owned()).is_ok(), "a catalogue is not valid");
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut key = String::new();
        for line in source.lines() {
            let start = line.chars().next().unwrap_or('#');
            if start.is_ascii_alphabetic() {
                key = line.split_once(" =").unwrap().0.to_owned();
                assert!(found.insert(key.clone(), BTreeSet::new()).is_none(), "{key} twice");
            }
            if start == '#' {
                continue;
            }
            let variables = line.split('$').skip(1).map(|rest| {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
                rest.get(..end).unwrap_or_default().to_owned()
            });
            found.entry(key.clone()).or_default().extend(variables);
        }
        found
    }

    #[test]
    fn both_languages_have_the_same_messages_and_variables() {
        let (en, ru) = (messages(EN), messages(RU));
        let missing: Vec<_> = en.keys().filter(|key| !ru.contains_key(*key)).collect();
        assert!(missing.is_empty(), "not in ru.ftl: {missing:?}");
        let missing: Vec<_> = ru.keys().filter(|key| !en.contains_key(*key)).collect();
        assert!(missing.is_empty(), "not in en.ftl: {missing:?}");
        assert_eq!(en, ru);
    }

    /// Every key that a template or a module names, `prefix-{}` aside.
    fn used(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                used(&path, found);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            for call in ["tr(\"", "trn(\"", "trv(\"", "trnv(\"", "key(\""] {
                let parts = text.split(call).skip(1);
                found.extend(parts.filter_map(|part| Some(part.split_once('"')?.0.to_owned())));
            }
        }
    }

    #[test]
    fn every_text_that_is_used_exists() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut keys = BTreeSet::new();
        used(&root.join("templates"), &mut keys);
        used(&root.join("src"), &mut keys);
        assert!(keys.len() > 50, "{keys:?}");
        let known = messages(EN);
        let is_key = |key: &&String| key.contains('-') && !key.contains(['{', ' ', '.']);
        let missing: Vec<_> =
            keys.iter().filter(is_key).filter(|key| !known.contains_key(*key)).collect();
        assert!(missing.is_empty(), "used, but in no catalogue: {missing:?}");
    }

    #[test]
    fn russian_has_its_plural_forms() {
        let of = |n: u32| Language::Russian.text("count-tools", &[("n", f64::from(n).into())]);
        assert_eq!(
            [of(1), of(3), of(11), of(21)].map(|text| text.split_once(' ').unwrap().1.to_owned()),
            ["инструмент", "инструмента", "инструментов", "инструмент"]
        );
    }

    #[test]
    fn the_language_of_a_browser_is_found() {
        let cases = [
            ("ru-RU,ru;q=0.9,en;q=0.8", Some(Language::Russian)),
            ("de-DE,en;q=0.5", Some(Language::English)),
            ("de", None),
            ("", None),
        ];
        for (header, expected) in cases {
            assert_eq!(Language::accepted(header), expected, "{header}");
        }
    }
}
