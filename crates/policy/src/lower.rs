//! Lowers a tree to a document, checks every key and collects every problem.
//!
//! One file per part of the language. The methods here read single values.
//!
//! Invariant: reading continues after a problem, so that one run reports all of them.

mod document;
mod entry;
mod example;
mod limit;
mod operand;
mod ownership;
mod predicate;
mod rule;
mod scenario;
mod section;

use std::{collections::HashMap, sync::Arc};

use crate::{
    Amount, Code, Known, Span, Window,
    glob::Glob,
    model::ToolKey,
    problem::{Findings, nearest},
    syntax::{Key, Member, Node, Value, type_name},
};

pub(crate) use document::document;
pub(crate) use entry::default_approve;
pub(crate) use predicate::conditions;
pub use section::METHODS_WITHOUT_PERMISSION;

/// The state while one document is lowered.
pub(crate) struct Reader<'r, 's> {
    pub(crate) findings: &'r mut Findings<'s>,
    pub(crate) known: &'r Known,
    pub(crate) regexes: usize,
    /// Counters of Intercept rules: (entry key, counter) → window.
    pub(crate) states: HashMap<(String, String), Window>,
}

impl<'r, 's> Reader<'r, 's> {
    pub(crate) fn new(findings: &'r mut Findings<'s>, known: &'r Known) -> Self {
        Self { findings, known, regexes: 0, states: HashMap::new() }
    }

    fn wrong_type(&mut self, node: &Node, what: &str, wanted: &str) {
        let key = what.trim_matches('`');
        // A description such as `a limit` is not input and has no backticks.
        let shown = if key.contains(' ') { key.to_owned() } else { format!("`{key}`") };
        let hint = example::hint(key, node).unwrap_or_else(|| format!("write {wanted}"));
        self.findings.add(
            Code::WrongType,
            node.span,
            format!("{shown} is {}, not {wanted}", type_name(node)),
            hint,
        );
    }

    /// The members of a mapping, all of whose keys are in `allowed`.
    fn fields<'n>(
        &mut self,
        node: &'n Node,
        what: &str,
        allowed: &[&'static str],
    ) -> Option<&'n [Member]> {
        let members = self.members(node, what)?;
        for Member { key, .. } in members {
            if !allowed.contains(&key.text.as_str()) {
                self.unknown_key(key, what, allowed);
            }
        }
        Some(members)
    }

    fn members<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [Member]> {
        if let Value::Map(members) = node.value() {
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
        if let Value::List(items) = node.value() {
            items
        } else {
            self.wrong_type(node, what, "a list");
            &[]
        }
    }

    fn string<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n str> {
        match node.value() {
            Value::Text(text) => Some(text),
            Value::Number(_) | Value::AmbiguousNumber(_) | Value::Bool(_) | Value::Null => {
                self.wrong_type(node, what, "a string (quote it)");
                None
            }
            Value::List(_) | Value::Map(_) => {
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
                "write a name, or remove the key",
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
        if let Value::Bool(flag) = node.value() {
            Some(flag)
        } else {
            self.wrong_type(node, what, "`true` or `false`");
            None
        }
    }

    /// One of a few keywords.
    fn word<T: Copy>(&mut self, node: &Node, what: &str, words: &[(&'static str, T)]) -> Option<T> {
        let names: Vec<&'static str> = words.iter().map(|(name, _)| *name).collect();
        let Value::Text(text) = node.value() else {
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
        let Value::Number(text) = node.value() else {
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
        let Value::Number(text) = node.value() else {
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
        let (parsed, text) = match node.value() {
            Value::Text(text) => (Window::parse(text), text),
            Value::Number(text) => (text.parse().ok().and_then(Window::seconds), text),
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
                    format!("`{text}` is not a valid glob: {why}"),
                    "globs support `*`, `?`, `[abc]`, `[a-z]`, `[!a]` and `\\`",
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

pub(crate) fn find<'n>(members: &'n [Member], name: &str) -> Option<&'n Node> {
    members.iter().find(|member| member.key.text == name).map(|member| &member.value)
}

pub(crate) fn key_span(members: &[Member], name: &str) -> Span {
    let found = members.iter().find(|member| member.key.text == name);
    found.map(|member| member.key.span).unwrap_or_default()
}
