//! The names under which session tools are published.
//!
//! A tool that is called like a built-in, or like a tool of a configured server, is published as
//! `session__<name>`; so is one that begins with `session__`, so that no two names meet.
//!
//! Invariant: within one list a published name means one name, and the other way round.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::machine::Sessions;
use crate::reach::Reach;
use crate::settings::Settings;

const PREFIX: &str = "session__";

impl Sessions {
    /// What a grant sees: published names and what clients call these tools.
    pub(crate) fn names(&self, reach: &Reach) -> BTreeMap<String, Arc<str>> {
        let live = self.serving.keys().filter(|name| self.is_served(name, reach));
        let kept = self.showcase.visible(reach).flat_map(|entry| entry.tools.keys());
        let originals: BTreeSet<Arc<str>> = live.chain(kept).cloned().collect();
        publish(&self.settings, &originals)
    }

    /// What clients call the tool that a grant knows by this name.
    pub(crate) fn original(&self, published: &str, reach: &Reach) -> Option<Arc<str>> {
        if self.settings.ascii_names {
            return self.names(reach).remove(published);
        }
        let settings = &self.settings;
        match published.strip_prefix(PREFIX).filter(|name| is_taken(settings, name)) {
            Some(name) => Some(name.into()),
            None if is_taken(settings, published) => None,
            None => Some(published.into()),
        }
    }
}

fn publish(settings: &Settings, originals: &BTreeSet<Arc<str>>) -> BTreeMap<String, Arc<str>> {
    let base = |name: &str| {
        let name = if settings.ascii_names { transliterate(name) } else { name.to_owned() };
        if is_taken(settings, &name) { format!("{PREFIX}{name}") } else { name }
    };
    let mut groups: BTreeMap<String, Vec<&Arc<str>>> = BTreeMap::new();
    for original in originals {
        groups.entry(base(original)).or_default().push(original);
    }
    let mut names = BTreeMap::new();
    for (name, group) in groups {
        let alone = group.len() == 1;
        for original in group {
            // Of several names that read alike in ASCII only one that is ASCII keeps it.
            let published = if alone || original.is_ascii() {
                name.clone()
            } else {
                let [a, b, c, ..]: [u8; 32] = Sha256::digest(original.as_bytes()).into();
                format!("{name}_{a:02x}{b:02x}{c:02x}")
            };
            names.insert(published, Arc::clone(original));
        }
    }
    names
}

fn is_taken(settings: &Settings, name: &str) -> bool {
    let of_server = |server: &String| {
        name.strip_prefix(server.as_str()).is_some_and(|rest| rest.starts_with("__"))
    };
    name.starts_with(PREFIX)
        || settings.built_ins.iter().any(|built_in| built_in == name)
        || settings.servers.iter().any(of_server)
}

/// A name in ASCII letters, digits, `_`, `.` and `-`; names that are so already stay.
fn transliterate(name: &str) -> String {
    if name.is_ascii() {
        return name.to_owned();
    }
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        let lower = c.to_lowercase().next().unwrap_or(c);
        match latin(lower) {
            Some(latin) if lower == c => out.push_str(latin),
            Some(latin) => {
                let mut chars = latin.chars();
                out.extend(chars.next().map(|first| first.to_ascii_uppercase()));
                out.push_str(chars.as_str());
            }
            None if c.is_ascii_alphanumeric() || "_.-".contains(c) => out.push(c),
            None if c.is_ascii() => out.push('_'),
            None => out.extend(["u", &format!("{:x}", u32::from(c))]),
        }
    }
    out
}

fn latin(c: char) -> Option<&'static str> {
    const RUSSIAN: [&str; 32] = [
        "a", "b", "v", "g", "d", "e", "zh", "z", "i", "j", "k", "l", "m", "n", "o", "p", "r", "s",
        "t", "u", "f", "kh", "c", "ch", "sh", "shh", "", "y", "", "eh", "yu", "ya",
    ];
    match c {
        'а'..='я' => RUSSIAN.get(c as usize - 'а' as usize).copied(),
        'ё' => Some("yo"),
        'і' => Some("i"),
        'ї' => Some("yi"),
        'є' => Some("ye"),
        'ґ' => Some("g"),
        'ў' => Some("u"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(settings: &Settings, originals: &[&str], expected: &[(&str, &str)]) {
        let names = publish(settings, &originals.iter().map(|name| Arc::from(*name)).collect());
        let names: Vec<(&str, &str)> = names.iter().map(|(a, b)| (a.as_str(), &**b)).collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn names_of_others_are_left_alone() {
        let settings = Settings { servers: vec!["files".to_owned()], ..Settings::default() };
        check(
            &settings,
            &["Найти", "files__read", "files_read", "session__x", "session_list", "timer"],
            &[
                ("files_read", "files_read"),
                ("session__files__read", "files__read"),
                ("session__session__x", "session__x"),
                ("session__session_list", "session_list"),
                ("timer", "timer"),
                ("Найти", "Найти"),
            ],
        );
    }

    #[test]
    fn names_in_ascii() {
        let settings = Settings { ascii_names: true, ..Settings::default() };
        check(
            &settings,
            &["Документ.ПровестиЗаказ", "get x", "Ёлка Щи", "中"],
            &[
                ("Dokument.ProvestiZakaz", "Документ.ПровестиЗаказ"),
                ("Yolka_Shhi", "Ёлка Щи"),
                ("get x", "get x"),
                ("u4e2d", "中"),
            ],
        );
        check(&settings, &["аx", "ax"], &[("ax", "ax"), ("ax_56bbb5", "аx")]);
    }
}
