//! From a tree to a document: every key checked, every problem collected.
//!
//! One file per part of the language. The methods here read single values and say what is wrong
//! with them in the user's words.
//!
//! Invariant: reading goes on after a problem, so that one run tells all of them.

mod document;
mod entry;
mod limit;
mod ownership;
mod predicate;
mod rule;
mod scenario;
mod section;

use std::{collections::HashMap, sync::Arc};

use crate::{
    Amount, Code, Known, Window,
    glob::Glob,
    model::ToolKey,
    node::{Key, Kind, Node},
    problem::{Findings, Span, nearest},
};

pub(crate) use document::document;
pub(crate) use entry::default_approve;
pub(crate) use predicate::conditions;
pub use section::METHODS_WITHOUT_PERMISSION;

/// The state of one reading.
pub(crate) struct Reader<'r, 's> {
    pub(crate) findings: &'r mut Findings<'s>,
    pub(crate) known: &'r Known,
    pub(crate) regexes: usize,
    /// Counters of Intercept's rules: (entry key, counter) → window.
    pub(crate) states: HashMap<(String, String), Window>,
}

impl<'r, 's> Reader<'r, 's> {
    pub(crate) fn new(findings: &'r mut Findings<'s>, known: &'r Known) -> Self {
        Self { findings, known, regexes: 0, states: HashMap::new() }
    }

    fn wrong_type(&mut self, node: &Node, what: &str, wanted: &str) {
        self.findings.add(
            Code::WrongType,
            node.span,
            format!("`{what}` is {}, not {wanted}", node.what()),
            format!("write {wanted}"),
        );
    }

    /// The members of a mapping, all of whose keys are in `allowed`.
    fn fields<'n>(
        &mut self,
        node: &'n Node,
        what: &str,
        allowed: &[&'static str],
    ) -> Option<&'n [(Key, Node)]> {
        let members = self.members(node, what)?;
        for (key, _) in members {
            if !allowed.contains(&key.text.as_str()) {
                self.unknown_key(key, what, allowed);
            }
        }
        Some(members)
    }

    fn members<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [(Key, Node)]> {
        if let Kind::Map(members) = &node.kind {
            Some(members)
        } else {
            self.wrong_type(node, what, "a mapping");
            None
        }
    }

    fn unknown_key(&mut self, key: &Key, what: &str, allowed: &[&'static str]) {
        let hint = match nearest(&key.text, allowed.iter().copied()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("{what} takes {}", quoted(allowed)),
        };
        self.findings.add(
            Code::UnknownKey,
            key.span,
            format!("unknown key `{}` in {what}", key.text),
            hint,
        );
    }

    fn list<'n>(&mut self, node: &'n Node, what: &str) -> &'n [Node] {
        if let Kind::List(items) = &node.kind {
            items
        } else {
            self.wrong_type(node, what, "a list");
            &[]
        }
    }

    fn string<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n str> {
        match &node.kind {
            Kind::String(text) => Some(text),
            Kind::Number(_) | Kind::Bool(_) | Kind::Null => {
                self.wrong_type(node, what, "a string (quote it)");
                None
            }
            Kind::List(_) | Kind::Map(_) => {
                self.wrong_type(node, what, "a string");
                None
            }
        }
    }

    fn name<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n str> {
        let text = self.string(node, what)?;
        if text.is_empty() {
            self.findings.add(
                Code::EmptyName,
                node.span,
                format!("`{what}` is empty"),
                "write a name, or take the key away",
            );
            return None;
        }
        Some(text)
    }

    fn strings(&mut self, node: &Node, what: &str) -> Vec<String> {
        let items = self.list(node, what);
        items.iter().filter_map(|item| self.name(item, what).map(str::to_owned)).collect()
    }

    fn flag(&mut self, node: &Node, what: &str) -> Option<bool> {
        if let Kind::Bool(flag) = node.kind {
            Some(flag)
        } else {
            self.wrong_type(node, what, "`true` or `false`");
            None
        }
    }

    /// One of a few words.
    fn word<T: Copy>(&mut self, node: &Node, what: &str, words: &[(&'static str, T)]) -> Option<T> {
        let names: Vec<&'static str> = words.iter().map(|(name, _)| *name).collect();
        let Kind::String(text) = &node.kind else {
            self.wrong_type(node, what, &format!("one of {}", quoted(&names)));
            return None;
        };
        if let Some((_, value)) = words.iter().find(|(name, _)| *name == text) {
            return Some(*value);
        }
        let hint = match nearest(text, names.iter().copied()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("write {}", quoted(&names)),
        };
        self.findings.add(
            Code::UnknownWord,
            node.span,
            format!("`{what}` cannot be `{text}`"),
            hint,
        );
        None
    }

    /// A whole number of at least `least`.
    fn whole(&mut self, node: &Node, what: &str, least: u64) -> Option<u64> {
        let Kind::Number(text) = &node.kind else {
            self.wrong_type(node, what, "a whole number");
            return None;
        };
        match text.parse::<u64>() {
            Ok(n) if n >= least => Some(n),
            _ => {
                self.findings.add(
                    Code::Range,
                    node.span,
                    format!("`{what}` cannot be `{text}`"),
                    format!("write a whole number of at least {least}"),
                );
                None
            }
        }
    }

    fn amount(&mut self, node: &Node, what: &str) -> Option<Amount> {
        let Kind::Number(text) = &node.kind else {
            self.wrong_type(node, what, "a number");
            return None;
        };
        let amount = Amount::parse(text).ok();
        if amount.is_none() {
            self.findings.add(
                Code::Range,
                node.span,
                format!("`{what}` cannot be `{text}`"),
                "write a number from 0 to 10^20 with at most 18 decimal places",
            );
        }
        amount
    }

    /// A window or duration: a word, `15m`, or a number of seconds.
    fn window(&mut self, node: &Node, what: &str) -> Option<Window> {
        let (parsed, text) = match &node.kind {
            Kind::String(text) => (Window::parse(text), text.as_str()),
            Kind::Number(text) => (text.parse().ok().and_then(Window::seconds), text.as_str()),
            _ => {
                self.wrong_type(node, what, "a duration such as `15m`");
                return None;
            }
        };
        if parsed.is_none() {
            self.findings.add(
                Code::Duration,
                node.span,
                format!("`{what}` cannot be `{text}`"),
                "write `minute`, `hour`, `day`, a duration such as `90s`, `15m`, `2h`, `7d`, or a number of seconds",
            );
        }
        parsed
    }

    fn missing(&mut self, span: Span, what: &str, key: &str, example: &str) {
        self.findings.add(
            Code::MissingKey,
            span,
            format!("{what} has no `{key}`"),
            format!("add `{example}`"),
        );
    }

    fn glob(&mut self, text: &str, span: Span) -> Option<Glob> {
        if text.is_empty() {
            self.findings.add(
                Code::EmptyName,
                span,
                "an empty glob matches nothing",
                "write a name, or `*` for all",
            );
            return None;
        }
        match Glob::parse(text) {
            Ok(glob) => Some(glob),
            Err(why) => {
                self.findings.add(
                    Code::BadGlob,
                    span,
                    format!("`{text}` is no glob: {why}"),
                    "globs know `*`, `?`, `[abc]`, `[a-z]`, `[!a]` and `\\`",
                );
                None
            }
        }
    }

    /// `tool`, `server/tool`, or `server__tool` of a configured server.
    fn tool_key(&mut self, text: &str, span: Span) -> Option<ToolKey> {
        let parts = text.split_once('/').or_else(|| {
            text.split_once("__")
                .filter(|(server, _)| self.known.servers.iter().any(|s| s == server))
        });
        let (server, tool) = match parts {
            Some((server, tool)) => (Some(self.glob(server, span)), self.glob(tool, span)),
            None => (None, self.glob(text, span)),
        };
        let server = match server {
            Some(glob) => Some(glob?),
            None => None,
        };
        let tool = tool?;
        let whole = text.contains('/').then(|| self.glob(text, span)).flatten();
        Some(ToolKey::new(text, server, tool, whole, span))
    }
}

/// `` `a`, `b`, `c` ``
pub(crate) fn quoted(names: &[&str]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

/// A JSON pointer one step further down.
pub(crate) fn pointer(base: &str, step: &str) -> Arc<str> {
    format!("{base}/{}", step.replace('~', "~0").replace('/', "~1")).into()
}

pub(crate) fn find<'n>(members: &'n [(Key, Node)], name: &str) -> Option<&'n Node> {
    members.iter().find(|(key, _)| key.text == name).map(|(_, node)| node)
}

pub(crate) fn key_span(members: &[(Key, Node)], name: &str) -> Span {
    members.iter().find(|(key, _)| key.text == name).map(|(key, _)| key.span).unwrap_or_default()
}
