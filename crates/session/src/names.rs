//! The published names of session tools.
//!
//! A tool that has the name of a built-in or of a tool of an active server is published as
//! `session__<name>`; so is one that begins with `session__`, so that names never collide. Names
//! are compared as a lenient reader would: without case, compatibility forms and invisible
//! characters.
//!
//! Invariant: within one list, published names and original names map one to one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use toolgate_json::fold;

use crate::machine::SessionMachine;
use crate::reach::Reach;
use crate::settings::SessionSettings;
use crate::tool::Tool;

const PREFIX: &str = "session__";

/// The maximum length of a published name.
const MAX_NAME: usize = 256;

/// A tool that a grant knows by a published name.
#[derive(Debug, Clone)]
pub struct KnownSessionTool {
    /// The name that clients use.
    pub original: Arc<str>,
    /// Every other name that policies match: see [`SessionMachine::known`].
    pub aliases: Arc<[Arc<str>]>,
    /// The distinct definitions of each kind of session that has it.
    pub offered: Arc<[KindDefinition]>,
}

/// A tool as the sessions of one kind define it.
#[derive(Debug, Clone)]
pub struct KindDefinition {
    /// The kind.
    pub kind: String,
    /// The definition.
    pub tool: Arc<Tool>,
}

/// Adds a definition of a kind, if it is not there yet.
pub(crate) fn offer(offered: &mut Vec<KindDefinition>, kind: &str, tool: &Arc<Tool>) {
    if !offered.iter().any(|known| known.kind == kind && Arc::ptr_eq(&known.tool, tool)) {
        offered.push(KindDefinition { kind: kind.to_owned(), tool: Arc::clone(tool) });
    }
}

impl SessionMachine {
    /// The tools that a grant sees: published names and original names.
    pub(crate) fn names(&self, reach: &Reach) -> BTreeMap<String, Arc<str>> {
        let live = self.serving.keys().filter(|name| self.is_served(name, reach));
        let kept = self.showcase.visible(reach).flat_map(|entry| entry.tools.keys());
        let originals: BTreeSet<Arc<str>> = live.chain(kept).cloned().collect();
        publish(&self.settings, &originals)
    }

    /// The original name of a published tool.
    pub(crate) fn original(&self, published: &str, reach: &Reach) -> Option<Arc<str>> {
        if self.settings.ascii_names {
            return self.names(reach).remove(published);
        }
        if published.len() > MAX_NAME {
            return None;
        }
        let settings = &self.settings;
        match published.strip_prefix(PREFIX).filter(|name| is_taken(settings, name)) {
            Some(name) => Some(name.into()),
            None if is_taken(settings, published) => None,
            None => Some(published.into()),
        }
    }

    /// The other names of a tool: as published, and as it would be published if its transliteration
    /// were unique.
    pub(crate) fn aliases(&self, original: &str, published: &str) -> Arc<[Arc<str>]> {
        let settings = &self.settings;
        let mut names: Vec<Arc<str>> = Vec::new();
        let latin = if settings.ascii_names { transliterate(original) } else { original.into() };
        for name in [&latin, &prefixed(settings, latin.clone()), published] {
            if *name != *original && !names.iter().any(|known| **known == *name) {
                names.push(name.into());
            }
        }
        names.into()
    }
}

fn publish(
    settings: &SessionSettings,
    originals: &BTreeSet<Arc<str>>,
) -> BTreeMap<String, Arc<str>> {
    let mut names: BTreeMap<String, Arc<str>> = BTreeMap::new();
    let mut groups: BTreeMap<String, Vec<&Arc<str>>> = BTreeMap::new();
    // ASCII names stay as they are: no transliteration can replace them.
    for original in originals {
        if !settings.ascii_names || original.is_ascii() {
            names.insert(prefixed(settings, original.to_string()), Arc::clone(original));
        } else {
            let latin = prefixed(settings, transliterate(original));
            groups.entry(latin).or_default().push(original);
        }
    }
    for (name, group) in groups {
        let alone = group.len() == 1;
        for original in group {
            let published = if alone && !names.contains_key(&name) {
                Some(name.clone())
            } else {
                // The digest makes a name that depends on no other tool; a longer one is taken if
                // a tool happens to be called like that.
                let hex = HEXLOWER.encode(&Sha256::digest(original.as_bytes()));
                let lengths = (6..=hex.len()).step_by(2).filter_map(|length| hex.get(..length));
                let mut made = lengths.map(|hex| format!("{name}_{hex}"));
                made.find(|made| !names.contains_key(made))
            };
            names.extend(published.map(|published| (published, Arc::clone(original))));
        }
    }
    names.retain(|name, _| name.len() <= MAX_NAME);
    names
}

/// The name, prefixed if it would collide.
fn prefixed(settings: &SessionSettings, name: String) -> String {
    if is_taken(settings, &name) { format!("{PREFIX}{name}") } else { name }
}

fn is_taken(settings: &SessionSettings, name: &str) -> bool {
    let name: String = fold(name).chars().map(look).collect();
    let of_server = |server: &String| {
        name.strip_prefix(server.as_str()).is_some_and(|rest| rest.starts_with("__"))
    };
    name.starts_with(PREFIX)
        || settings.built_ins.iter().any(|built_in| *built_in == *name)
        || settings.servers.iter().any(of_server)
}

/// The Latin letter that looks like this one.
fn look(c: char) -> char {
    match c {
        'а' | 'α' => 'a',
        'с' | 'ϲ' => 'c',
        'ԁ' => 'd',
        'е' => 'e',
        'һ' => 'h',
        'і' | 'ι' => 'i',
        'ј' => 'j',
        'о' | 'ο' => 'o',
        'р' | 'ρ' => 'p',
        'ԛ' => 'q',
        'ѕ' => 's',
        'ν' => 'v',
        'ԝ' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'γ' => 'y',
        _ => c,
    }
}

/// Transliterates a name to ASCII letters, digits, `_`, `.` and `-`; ASCII names stay.
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

    fn check(settings: &SessionSettings, originals: &[&str], expected: &[(&str, &str)]) {
        let names = publish(settings, &originals.iter().map(|name| Arc::from(*name)).collect());
        let names: Vec<(&str, &str)> = names.iter().map(|(a, b)| (a.as_str(), &**b)).collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn names_of_others_are_left_alone() {
        let settings =
            SessionSettings { servers: vec!["files".to_owned()], ..SessionSettings::default() };
        check(
            &settings,
            &[
                "FILES__read",
                "Session_List",
                "Найти",
                "files__read",
                "files_read",
                "fіles__read",
                "ｆiles__read",
                "session__x",
                "session_list",
                "timer",
            ],
            &[
                ("files_read", "files_read"),
                ("session__FILES__read", "FILES__read"),
                ("session__Session_List", "Session_List"),
                ("session__files__read", "files__read"),
                ("session__fіles__read", "fіles__read"),
                ("session__session__x", "session__x"),
                ("session__session_list", "session_list"),
                ("session__ｆiles__read", "ｆiles__read"),
                ("timer", "timer"),
                ("Найти", "Найти"),
            ],
        );
    }

    #[test]
    fn names_in_ascii() {
        let settings = SessionSettings { ascii_names: true, ..SessionSettings::default() };
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
        // A tool cannot take the generated name of another.
        check(
            &settings,
            &["аx", "ax", "ax_56bbb5"],
            &[("ax", "ax"), ("ax_56bbb5", "ax_56bbb5"), ("ax_56bbb513", "аx")],
        );
    }
}
