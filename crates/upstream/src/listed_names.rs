//! Names that a server has listed: tools and prompts, and the risk classes of the tools.
//!
//! Invariant: learned from lists only; a name that was listed once stays known.

use std::collections::{HashMap, HashSet};

use parking_lot::RwLock;
use toolgate_admission::list_kind::Kind;
use toolgate_catalog::{Class, Definition, classify};
use toolgate_json::{fold, items, peek, text};

use crate::lists::List;

/// How many names of each kind are kept of one server.
const MAX_NAMES: usize = 100_000;

/// The names of one server.
#[derive(Debug, Default)]
pub(crate) struct ListedNames {
    tools: RwLock<Names>,
    prompts: RwLock<Names>,
    classes: RwLock<HashMap<Box<str>, Class>>,
}

#[derive(Debug, Default)]
struct Names {
    /// A list was received, even if empty.
    any: bool,
    exact: HashSet<Box<str>>,
    folded: HashSet<Box<str>>,
}

impl ListedNames {
    /// Learns from a page of a list.
    pub(crate) fn learn(&self, kind: Kind, result: &str) {
        if self.of(kind).is_none() {
            return;
        }
        let list = peek(result, &[kind.member()]).ok().flatten();
        let Some(entries) = list.and_then(|list| items(list).ok().flatten()) else { return };
        for entry in entries {
            let name = peek(entry, &["name"]).ok().flatten().and_then(text);
            if let Some(name) = name {
                self.add(kind, &name, entry);
            }
        }
        self.mark_listed(kind);
    }

    /// Learns a tool of a page; [`Self::mark_listed`] ends the page.
    pub(crate) fn learn_tool(&self, own: &str, class: Class) {
        self.add_class(own, class);
        Self::add_name(&self.tools, own);
    }

    /// Learns a definition that parsers may read differently.
    pub(crate) fn learn_unreadable(&self, entry: &str) {
        if let Some(name) = peek(entry, &["name"]).ok().flatten().and_then(text) {
            self.add(Kind::Tools, &name, entry);
        }
    }

    /// Learns from a complete list.
    pub(crate) fn learn_list(&self, kind: Kind, list: &List) {
        for (own, entry) in list.entries() {
            self.add(kind, own, entry);
        }
        self.mark_listed(kind);
    }

    /// Whether the server has listed this name; `None` if no list was received.
    pub(crate) fn lists(&self, kind: Kind, name: &str) -> Option<bool> {
        let names = self.of(kind)?.read();
        names.any.then(|| names.exact.contains(name))
    }

    /// Whether this name is in a list that was received, even if that list is still being read.
    pub(crate) fn knows(&self, kind: Kind, name: &str) -> bool {
        self.of(kind).is_some_and(|names| names.read().exact.contains(name))
    }

    /// Whether the server has listed a name with the same folded form.
    pub(crate) fn lists_folded(&self, kind: Kind, name: &str) -> bool {
        self.of(kind).is_some_and(|names| names.read().folded.contains(&*fold(name)))
    }

    /// Whether `holds` is true of any listed name; `None` if no list was received, or if there are
    /// more than `most` names.
    pub(crate) fn any(
        &self,
        kind: Kind,
        most: usize,
        holds: impl FnMut(&str) -> bool,
    ) -> Option<bool> {
        let names: Vec<Box<str>> = {
            let names = self.of(kind)?.read();
            if !names.any || names.exact.len() > most {
                return None;
            }
            names.exact.iter().cloned().collect()
        };
        Some(names.iter().map(|name| &**name).any(holds))
    }

    /// The class of a tool that was listed, by its newest definition.
    pub(crate) fn class(&self, tool: &str) -> Option<Class> {
        self.classes.read().get(tool).copied()
    }

    fn of(&self, kind: Kind) -> Option<&RwLock<Names>> {
        match kind {
            Kind::Tools => Some(&self.tools),
            Kind::Prompts => Some(&self.prompts),
            Kind::Resources | Kind::Templates => None,
        }
    }

    /// A list was received.
    pub(crate) fn mark_listed(&self, kind: Kind) {
        if let Some(names) = self.of(kind) {
            names.write().any = true;
        }
    }

    fn add(&self, kind: Kind, name: &str, entry: &str) {
        let Some(names) = self.of(kind) else { return };
        if kind == Kind::Tools {
            self.add_class(name, class_of(name, entry));
        }
        Self::add_name(names, name);
    }

    fn add_class(&self, tool: &str, class: Class) {
        if self.class(tool) == Some(class) {
            return;
        }
        let mut classes = self.classes.write();
        if classes.len() < MAX_NAMES || classes.contains_key(tool) {
            classes.insert(tool.into(), class);
        }
    }

    fn add_name(names: &RwLock<Names>, name: &str) {
        if names.read().exact.contains(name) {
            return;
        }
        let mut names = names.write();
        if names.exact.len() < MAX_NAMES {
            names.exact.insert(name.into());
            names.folded.insert(fold(name).into());
        }
    }
}

/// The class of a definition, by the server's own name of its tool.
pub(crate) fn class_of(own: &str, entry: &str) -> Class {
    match Definition::parse(entry) {
        Ok(definition) => classify(&Definition { name: own.into(), ..definition }).class,
        Err(_) => Class::by_name(own),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_known_while_its_list_is_read() {
        let names = ListedNames::default();
        names.add(Kind::Tools, "echo", r#"{"name":"echo"}"#);
        assert_eq!(names.lists(Kind::Tools, "echo"), None, "the list is not read to its end");
        assert!(names.lists_folded(Kind::Tools, "echo") && names.knows(Kind::Tools, "echo"));
        assert!(!names.knows(Kind::Tools, "Echo"));
    }

    #[test]
    fn names_and_classes_are_learned_from_lists() {
        let names = ListedNames::default();
        assert_eq!(names.lists(Kind::Tools, "a"), None);
        names.learn(
            Kind::Tools,
            r#"{"tools":[{"name":"get_a","annotations":{"destructiveHint":true}},{"name":"Read"},
                {"name":"get_b","annotations":{"readOnlyHint":false}},
                {"name":"drop","annotations":{"readOnlyHint":true,"destructiveHint":false}}]}"#,
        );
        names.learn(
            Kind::Tools,
            r#"{"tools":[{"name":"close_session"},{"name":"get_c","description":"Deletes c"}]}"#,
        );
        assert_eq!(names.class("close_session"), Some(Class::Other));
        assert_eq!(names.class("get_c"), Some(Class::Destructive));
        assert_eq!(names.lists(Kind::Tools, "get_a"), Some(true));
        assert_eq!(names.lists(Kind::Tools, "Get_a"), Some(false));
        assert_eq!(names.lists(Kind::Prompts, "get_a"), None);
        for (name, expected) in
            [("GET_A ", true), ("read", true), ("ｒead", true), ("other", false)]
        {
            assert_eq!(names.lists_folded(Kind::Tools, name), expected, "{name}");
        }
        for (name, expected) in [
            ("get_a", Some(Class::Destructive)),
            ("get_b", Some(Class::Write)),
            ("Read", Some(Class::Read)),
            ("drop", Some(Class::Destructive)),
            ("unlisted", None),
        ] {
            assert_eq!(names.class(name), expected, "{name}");
        }
    }
}
