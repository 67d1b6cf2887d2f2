//! A compiled policy: a document, ready to decide.

use std::{cmp::Reverse, sync::Arc};

use jiff::Timestamp;
use smallvec::SmallVec;
use toolgate_json::fold;

use crate::{
    Call, Class, Digest, Known, Problem, hash,
    index::{Index, Matches},
    lint,
    lower::{self, Reader},
    model::{Action, Approve, Document, Entry, Section, Shadow},
    problem::Findings,
    syntax,
};

/// A loaded document: its problems, and the policy if none of them is an error.
#[derive(Debug)]
pub struct Loaded {
    /// All problems, in the order of the source.
    pub problems: Vec<Problem>,
    /// The policy, unless an error forbids it.
    pub policy: Option<Policy>,
}

/// A policy that can decide.
#[derive(Debug)]
pub struct Policy {
    pub(crate) name: String,
    pub(crate) document: Document,
    pub(crate) digest: Digest,
    pub(crate) hash: String,
    pub(crate) tools: Index,
    pub(crate) hide: Index,
    pub(crate) implicit: ImplicitRules,
}

/// The rules that a document does not name itself.
#[derive(Debug)]
pub(crate) struct ImplicitRules {
    pub(crate) hidden: Arc<str>,
    pub(crate) default_deny: Arc<str>,
    pub(crate) repeat: Arc<str>,
    /// How a predicate without keys for it asks a person.
    pub(crate) approve: Approve,
}

/// The entries that apply to a tool, in the order reasons are named: exact keys, globs from the
/// most literal to the least, the class, `all_tools`.
pub(crate) type Entries<'p> = SmallVec<[&'p Entry; 8]>;

/// Their positions in the document, in that order.
pub(crate) type Places = SmallVec<[Place; 8]>;

/// The position of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The key of `tools` at this position.
    Tool(usize),
    Class(Class),
    AllTools,
}

impl Policy {
    /// Reads, checks and compiles a document. `name` is the policy's name: counters belong to it.
    pub fn load(name: &str, source: &str, known: &Known) -> Loaded {
        let mut findings = Findings::new(source);
        let document = syntax::parse(source, &mut findings)
            .and_then(|root| lower::document(&mut Reader::new(&mut findings, known), &root));
        if let Some(document) = &document {
            lint::check(document, known, &mut findings);
        }
        let valid = !findings.has_errors();
        let policy = document.filter(|_| valid).map(|document| Self::compile(name, document));
        Loaded { problems: findings.finish(), policy }
    }

    fn compile(name: &str, mut document: Document) -> Self {
        document.tools.sort_by(|(a, _), (b, _)| {
            let rank = |key: &crate::model::ToolKey| {
                (!key.is_exact(), key.server.is_none(), Reverse(key.literals()))
            };
            rank(a).cmp(&rank(b)).then_with(|| a.text.cmp(&b.text))
        });
        for (key, entry) in &mut document.tools {
            entry.names = key.literals() > 0;
        }
        for (_, entry) in &mut document.classes {
            entry.names = entry.action == Some(Action::Allow);
        }
        let digest = hash::of(&document);
        Self {
            name: name.to_owned(),
            digest,
            hash: digest.to_string(),
            tools: Index::new(document.tools.iter().map(|(key, _)| key)),
            hide: Index::new(&document.hide),
            implicit: ImplicitRules {
                hidden: "(hidden)".into(),
                default_deny: "(default deny)".into(),
                repeat: "/loop".into(),
                approve: lower::default_approve(""),
            },
            document,
        }
    }

    /// The policy's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// SHA-256 over the document's meaning, without comments, order of keys, `description` and
    /// `tests`.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Whether the whole document is in shadow at this time.
    pub fn is_shadow(&self, now: Timestamp) -> bool {
        self.document.shadow.holds_at(now)
    }

    /// Whether a server may take this name of a tool for one that a key of `tools` or an entry of
    /// `hide` means: it folds to what the key matches, and the key does not match it.
    pub fn is_imitated(&self, server: &str, tool: &str) -> bool {
        let folded = fold(tool);
        let keys = self.document.tools.iter().map(|(key, _)| key).chain(&self.document.hide);
        keys.into_iter().any(|key| key.is_imitated(server, tool, &folded))
    }

    /// The same for the name of a prompt and the `prompts` section.
    pub fn is_prompt_imitated(&self, name: &str) -> bool {
        let folded = fold(name);
        let Section { allow, hide, deny, .. } = &self.document.prompts;
        let mut patterns = allow.iter().chain(hide).chain(deny);
        patterns.any(|one| one.read.matches(&folded) && !one.glob.matches(name))
    }

    /// Whether a decision may need the argument digest.
    pub fn needs_digest(&self) -> bool {
        self.document.repeat.is_some() || self.all_entries().any(|e| e.repeats.is_some())
    }

    /// Whether some tool, prompt or resource may be left out of lists, so that they must be
    /// filtered. A document that is always in shadow leaves out nothing.
    pub fn may_hide(&self) -> bool {
        let sections = [&self.document.resources, &self.document.prompts];
        self.document.shadow != Shadow::Always
            && (!self.document.hide.is_empty()
                || !self.names_every_tool()
                || self.all_entries().any(|entry| entry.action == Some(Action::Hide))
                || sections
                    .iter()
                    .any(|section| !section.default_allow || !section.hide.is_empty()))
    }

    /// Whether every tool is listed unless it is hidden: by default, or because every class is
    /// allowed.
    fn names_every_tool(&self) -> bool {
        let Document { default_allow, list_all, classes, .. } = &self.document;
        let allows = |class: &Class| {
            classes
                .iter()
                .any(|(of, entry)| of == class && entry.names && entry.shadow == Shadow::No)
        };
        *default_allow || *list_all || Class::ALL.iter().all(allows)
    }

    /// Every argument path that some rule names, sorted: the `facts` of an audit row.
    pub fn argument_paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        for entry in self.all_entries() {
            let mut conditions = Vec::new();
            for predicate in entry.require.iter().chain(&entry.deny_if).chain(&entry.approve_if) {
                predicate.test.conditions(&mut conditions);
            }
            paths.extend(conditions.iter().map(|c| c.path.text.clone()));
            let limits =
                entry.limits.iter().chain(entry.rules.iter().filter_map(|r| r.limit.as_ref()));
            for limit in limits {
                if let crate::model::Increment::From(path) = &limit.increment {
                    paths.push(path.text.clone());
                }
            }
            for condition in entry.rules.iter().flat_map(|r| &r.conditions) {
                if let crate::model::RulePath::Args(names) = &condition.path {
                    paths.push(format!("args.{}", names.join(".")));
                }
            }
            paths.extend(entry.ends.iter().map(|e| e.path.text.clone()));
        }
        paths.retain(|path| path.starts_with("args."));
        paths.sort();
        paths.dedup();
        paths
    }

    /// The entries that apply to a call.
    pub(crate) fn entries(&self, call: &Call<'_>) -> Entries<'_> {
        self.places(call).into_iter().filter_map(|place| self.entry(place)).collect()
    }

    /// The positions of the entries that apply to a call, by every name of its tool.
    pub(crate) fn places(&self, call: &Call<'_>) -> Places {
        let mut keys = self.keys(call.server, call.tool);
        if !call.aliases.is_empty() {
            for alias in call.aliases {
                keys.extend(self.keys(call.server, alias));
            }
            keys.sort_unstable();
            keys.dedup();
        }
        if call.is_my_permissions() {
            // Only an entry that names it applies.
            let names = |at: &usize| self.document.tools.get(*at).is_some_and(|(_, it)| it.names);
            return keys.into_iter().filter(names).map(Place::Tool).collect();
        }
        let mut places: Places = keys.into_iter().map(Place::Tool).collect();
        let class = call.class;
        if self.class(class).is_some() {
            places.push(Place::Class(class));
        }
        if self.document.all_tools.is_some() {
            places.push(Place::AllTools);
        }
        places
    }

    /// The entry at a position.
    pub(crate) fn entry(&self, place: Place) -> Option<&Entry> {
        match place {
            Place::Tool(at) => self.document.tools.get(at).map(|(_, entry)| &**entry),
            Place::Class(class) => self.class(class),
            Place::AllTools => self.document.all_tools.as_ref(),
        }
    }

    /// The positions of the keys that match a name.
    fn keys(&self, server: &str, tool: &str) -> Matches {
        let mut keys = self.tools.candidates(tool);
        let matches = |at: &mut usize| {
            self.document.tools.get(*at).is_some_and(|(key, _)| key.matches(server, tool))
        };
        keys.retain(matches);
        keys
    }

    pub(crate) fn class(&self, class: Class) -> Option<&Entry> {
        self.document.classes.iter().find(|(c, _)| *c == class).map(|(_, entry)| entry)
    }

    /// Whether `hide` covers a name of the tool.
    pub(crate) fn hides_call(&self, call: &Call<'_>) -> bool {
        call.names().any(|name| self.hides(call.server, name))
    }

    fn hides(&self, server: &str, tool: &str) -> bool {
        self.hide
            .candidates(tool)
            .iter()
            .any(|at| self.document.hide.get(*at).is_some_and(|key| key.matches(server, tool)))
    }

    pub(crate) fn all_entries(&self) -> impl Iterator<Item = &Entry> {
        let document = &self.document;
        let classes = document.classes.iter().map(|(_, e)| e);
        document.tools.iter().map(|(_, e)| &**e).chain(classes).chain(&document.all_tools)
    }
}

#[cfg(test)]
mod tests {
    use super::{Known, Policy};

    #[test]
    fn names_that_imitate_keys_are_found() {
        let source = r#"{"version":"1","default":"allow","hide":["delete_account","Admin_*"],
            "tools":{"drop_*":{"action":"deny"},"ops/wipe":{},"straße":{},"v[A-C]":{},"[!x]y":{},"*":{}},
            "prompts":{"hide":["secret_*"]}}"#;
        let policy = Policy::load("p", source, &Known::default()).policy.unwrap();
        for (server, tool, expected) in [
            ("s", "delete_account", false),
            ("s", "delete_account ", true),
            ("s", "Delete_Account", true),
            ("s", "ｄelete_account", true),
            ("s", "delete\u{200b}_account", true),
            ("s", "del\u{ad}ete_account", true),
            ("s", "delete_account\u{0}", true),
            ("s", "\u{a0}delete_account", true),
            ("s", "DROP_everything", true),
            ("s", "drop_everything", false),
            ("s", "drop_Everything", false),
            ("s", "drop_everything ", false),
            ("s", "admin_x", true),
            ("s", "Admin_x", false),
            ("ops", "wipe", false),
            ("ops", "WIPE", true),
            ("s", "WIPE", false),
            ("s", "OPS/wipe", true),
            ("s", "ops/wipe", false),
            ("s", "STRASSE", true),
            ("s", "va", true),
            ("s", "vA", false),
            ("s", "vd", false),
            ("s", "ay", false),
            ("s", "Xy", false),
            ("s", "get_user", false),
        ] {
            assert_eq!(policy.is_imitated(server, tool), expected, "{server} {tool:?}");
        }
        for (name, expected) in [("secret_a", false), ("Secret_a", true), ("other", false)] {
            assert_eq!(policy.is_prompt_imitated(name), expected, "{name}");
        }
    }
}
